"""Users: who they are, their passwords, and the codes that mails carry. They live in the accounts
database, never in git.

A user's `sessions` number is part of every JSON web token: a changed password raises it, which ends
all tokens given out before.
"""

import hashlib
import hmac
import re
import secrets
import time
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, func, or_, select
from sqlalchemy.exc import IntegrityError

from server.auth.accounts import Accounts, users_table
from server.auth.passwords import check_password, hash_password
from server.documents.constraints import LONGEST_EMAIL, is_email
from server.documents.ids import new_document_id
from server.documents.timestamps import now
from server.errors import ApplicationError

RESET_HOURS, CONFIRM_HOURS = 1, 72  # how long the codes in mails are good
SHORTEST_NAME, SHORTEST_PASSWORD = 3, 6
LONGEST = {"username": 200, "email": LONGEST_EMAIL}  # as the columns are
LONGEST_OTHER = 1024
TAKEN = "Email or Username are already taken"
_LARGEST_ID = 2**31 - 1
_CONTROL = re.compile(r"[\x00-\x1f\x7f\ud800-\udfff]")
_u = users_table.c


@dataclass(frozen=True, slots=True)
class User:
    """A user as the API shows it, and what deciding about it needs; never the password."""

    id: int
    document_id: str
    username: str
    email: str
    provider: str
    confirmed: bool
    blocked: bool
    role: str
    sessions: int
    created_at: str
    updated_at: str


def _user(row: Any) -> User:
    return User(**{column.name: getattr(row, column.name) for column in fields(User)})


class Users:
    """The users of one site."""

    def __init__(self, accounts: Accounts) -> None:
        self.engine = accounts.engine

    def all(self) -> list[User]:
        """Every user, in the order of their creation."""
        with self.engine.connect() as connection:
            return [_user(row) for row in connection.execute(users_table.select().order_by(_u.id))]

    def count(self) -> int:
        """How many there are."""
        with self.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(users_table)).scalar_one())

    def get(self, user_id: int) -> User | None:
        """The user with a number."""
        if user_id > _LARGEST_ID:
            return None
        with self.engine.connect() as connection:
            row = connection.execute(users_table.select().where(_u.id == user_id)).first()
        return _user(row) if row else None

    def named(self, identifier: str) -> User | None:
        """The user with a name or e-mail address."""
        row = self._named(identifier)
        return _user(row) if row else None

    def _named(self, identifier: str) -> Any:
        """The row of a name or address; an address is its owner's, whatever others call themselves."""
        email = _address(identifier)
        found = users_table.select().where(or_(_u.username == identifier, _u.email == email))
        with self.engine.connect() as connection:
            return connection.execute(found.order_by((_u.email == email).desc())).first()

    def create(
        self,
        username: str,
        email: str,
        password: str | None,
        *,
        role: str,
        confirmed: bool,
        blocked: bool = False,
    ) -> User:
        """Make a user. Raises ApplicationError where name or address are taken."""
        timestamp = now()
        row = {
            "document_id": new_document_id(),
            "username": username,
            "email": _address(email),
            "password": hash_password(password) if password else None,
            "provider": "local",
            "confirmed": confirmed,
            "blocked": blocked,
            "role": role,
            "sessions": 0,
            "created_at": timestamp,
            "updated_at": timestamp,
        }
        try:
            with self.engine.begin() as connection:
                key = connection.execute(users_table.insert(), row).inserted_primary_key
                assert key is not None
                return _sole(connection, int(key[0]))
        except IntegrityError as error:
            raise ApplicationError(TAKEN) from error

    def update(self, user_id: int, values: dict[str, Any]) -> User | None:
        """Change some columns of a user. Raises ApplicationError where name or address are taken.

        A new password ends its sessions; what was mailed before a new password or address is void.
        """
        changes: dict[str, Any] = {**values, "updated_at": now()}
        if "email" in changes:
            changes["email"] = _address(str(changes["email"]))
            changes["reset_hash"] = changes["confirm_hash"] = None
        if changes.get("password"):
            changes["password"] = hash_password(str(changes["password"]))
            changes["sessions"] = _u.sessions + 1
            changes["reset_hash"] = None
        try:
            with self.engine.begin() as connection:
                update = users_table.update().where(_u.id == user_id).values(**changes)
                if connection.execute(update).rowcount and ("username" in changes or "email" in changes):
                    _sole(connection, user_id)
        except IntegrityError as error:
            raise ApplicationError(TAKEN) from error
        return self.get(user_id)

    def delete(self, user_id: int) -> User | None:
        """Remove a user; returns who it was."""
        found = self.get(user_id)
        if found:
            with self.engine.begin() as connection:
                connection.execute(users_table.delete().where(_u.id == user_id))
        return found

    def with_password(self, identifier: str, password: str) -> User | None:
        """The user with a name or address and this password; as slow for one who does not exist."""
        row = self._named(identifier)
        kept = row.password if row else None
        good = check_password(kept, password)
        return _user(row) if row and good else None

    # --- codes in mails ------------------------------------------------------------------------

    def reset_code(self, user: User) -> str:
        """A new code with which the user's password can be set, once, within RESET_HOURS."""
        return self._code(user, _u.reset_hash, RESET_HOURS)

    def spend_reset_code(self, code: str) -> User | None:
        """The user whose reset code this is; the code is of no use afterwards."""
        return self._spend(code, _u.reset_hash, {})

    def confirm_code(self, user: User) -> str:
        """A new code with which the user confirms the e-mail address, once, within CONFIRM_HOURS."""
        return self._code(user, _u.confirm_hash, CONFIRM_HOURS)

    def spend_confirm_code(self, code: str) -> User | None:
        """The user whose address a code confirms, now confirmed."""
        return self._spend(code, _u.confirm_hash, {"confirmed": True})

    def _code(self, user: User, column: Any, hours: float) -> str:
        """A code that says until when it is good, which its hash keeps it from changing."""
        code = f"{secrets.token_urlsafe(32)}.{int(time.time() + hours * 3600)}"
        with self.engine.begin() as connection:
            update = users_table.update().where(_u.id == user.id)
            connection.execute(update.values({column.name: _hash(code)}))
        return code

    def _spend(self, code: str, column: Any, values: dict[str, Any]) -> User | None:
        hashed = _hash(code)
        with self.engine.begin() as connection:
            row = connection.execute(users_table.select().where(column == hashed)).first()
            if row is None or not hmac.compare_digest(getattr(row, column.name), hashed):
                return None
            if int(code.rpartition(".")[2]) <= time.time():
                return None
            update = users_table.update().where(_u.id == row.id, column == hashed)
            done = connection.execute(update.values({**values, column.name: None}))
            return _user(row) if done.rowcount else None


def _sole(connection: Connection, user_id: int) -> User:
    """A user just written. Raises ApplicationError where another has its name for an address.

    Both are identifiers to log in with: each must lead to one account only.
    """
    row = connection.execute(users_table.select().where(_u.id == user_id)).one()
    same = or_(func.lower(_u.username) == row.email, _u.email == _address(row.username))
    if connection.execute(select(_u.id).where(_u.id != user_id, same)).first():
        raise ApplicationError(TAKEN)
    return _user(row)


def broken_rule(name: str, value: str, least: int = 1) -> str:
    """What is wrong with a field of a user, in words that go after its name; nothing where it is good.

    The length is looked at first, since what else is looked at takes long for a long text.
    """
    longest = LONGEST.get(name, LONGEST_OTHER)
    if len(value) > longest:
        return f"must be at most {longest} characters"
    if _CONTROL.search(value):
        return "must not have control characters"
    if name == "email" and not is_email(value):
        return "must be a valid email"
    return f"must be at least {least} characters" if len(value) < least else ""


def _address(text: str) -> str:
    """An e-mail address as it is kept and compared."""
    return text.strip().lower()


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()


def public_fields(user: User) -> dict[str, Any]:
    """A user as the answers to logins show it."""
    return {
        "id": user.id,
        "documentId": user.document_id,
        "username": user.username,
        "email": user.email,
        "provider": user.provider,
        "confirmed": user.confirmed,
        "blocked": user.blocked,
        "createdAt": user.created_at,
        "updatedAt": user.updated_at,
        "publishedAt": user.created_at,
    }
