"""Users: who they are, their passwords, and the codes that mails carry. They live in the accounts
database, never in git.

A user's `sessions` number is part of every JSON web token: a changed password raises it, which ends
all tokens given out before.
"""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import func, or_, select
from sqlalchemy.exc import IntegrityError

from server.accounts import Accounts, users_table
from server.errors import ApplicationError
from server.ids import new_document_id
from server.moments import from_datetime, now
from server.passwords import check_password, hash_password

RESET_HOURS = 1
TAKEN = "Email or Username are already taken"
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
        return self._one(_u.id == user_id)

    def named(self, identifier: str) -> User | None:
        """The user with a name or e-mail address."""
        return self._one(or_(_u.username == identifier, _u.email == identifier.strip().lower()))

    def _one(self, condition: Any) -> User | None:
        with self.engine.connect() as connection:
            row = connection.execute(users_table.select().where(condition)).first()
        return _user(row) if row else None

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
        moment = now()
        row = {
            "document_id": new_document_id(),
            "username": username,
            "email": email.strip().lower(),
            "password": hash_password(password) if password else None,
            "provider": "local",
            "confirmed": confirmed,
            "blocked": blocked,
            "role": role,
            "sessions": 0,
            "created_at": moment,
            "updated_at": moment,
        }
        try:
            with self.engine.begin() as connection:
                done = connection.execute(users_table.insert(), row)
                key = done.inserted_primary_key
        except IntegrityError as error:
            raise ApplicationError(TAKEN) from error
        found = self.get(int(key[0])) if key else None
        assert found is not None
        return found

    def update(self, user_id: int, values: dict[str, Any]) -> User | None:
        """Change some columns of a user; a new password ends its sessions. ApplicationError: taken."""
        changes: dict[str, Any] = {**values, "updated_at": now()}
        if "email" in changes:
            changes["email"] = str(changes["email"]).strip().lower()
        if changes.get("password"):
            changes["password"] = hash_password(str(changes["password"]))
            changes["sessions"] = _u.sessions + 1
        try:
            with self.engine.begin() as connection:
                connection.execute(users_table.update().where(_u.id == user_id).values(**changes))
        except IntegrityError as error:
            raise ApplicationError(TAKEN) from error
        return self.get(user_id)

    def delete(self, user_id: int) -> User | None:
        """Remove a user; returns who it was."""
        found = self.get(user_id)
        with self.engine.begin() as connection:
            connection.execute(users_table.delete().where(_u.id == user_id))
        return found

    def with_password(self, identifier: str, password: str) -> User | None:
        """The user with a name or address and this password; as slow for one who does not exist."""
        condition = or_(_u.username == identifier, _u.email == identifier.strip().lower())
        with self.engine.connect() as connection:
            row = connection.execute(users_table.select().where(condition)).first()
        kept = row.password if row else None
        good = check_password(kept, password)
        return _user(row) if row and good else None

    # --- codes in mails ------------------------------------------------------------------------

    def reset_code(self, user: User) -> str:
        """A new code with which the user's password can be set, once, within RESET_HOURS."""
        code = secrets.token_urlsafe(32)
        until = from_datetime(datetime.now(UTC) + timedelta(hours=RESET_HOURS))
        self._set(user.id, reset_hash=_hash(code), reset_until=until)
        return code

    def spend_reset_code(self, code: str) -> User | None:
        """The user whose reset code this is; the code is of no use afterwards."""
        return self._spend(_u.reset_hash, code, {"reset_hash": None, "reset_until": None}, timed=True)

    def confirm_code(self, user: User) -> str:
        """A new code with which the user confirms the e-mail address."""
        code = secrets.token_urlsafe(32)
        self._set(user.id, confirm_hash=_hash(code))
        return code

    def spend_confirm_code(self, code: str) -> User | None:
        """The user whose address a code confirms, now confirmed."""
        return self._spend(_u.confirm_hash, code, {"confirm_hash": None, "confirmed": True}, timed=False)

    def _set(self, user_id: int, **values: Any) -> None:
        with self.engine.begin() as connection:
            connection.execute(users_table.update().where(_u.id == user_id).values(**values))

    def _spend(self, column: Any, code: str, values: dict[str, Any], *, timed: bool) -> User | None:
        hashed = _hash(code)
        with self.engine.begin() as connection:
            row = connection.execute(users_table.select().where(column == hashed)).first()
            if row is None or not hmac.compare_digest(getattr(row, column.name), hashed):
                return None
            if timed and (row.reset_until or "") <= now():
                return None
            done = connection.execute(
                users_table.update().where(_u.id == row.id, column == hashed).values(**values)
            )
            return _user(row) if done.rowcount else None


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
