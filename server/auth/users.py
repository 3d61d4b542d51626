"""The users of the accounts database: who they are, their passwords, and the codes that mails carry.

A user's `sessions` number is part of every JSON web token: a changed password raises it, which ends
all tokens given out before. `version` counts what can be seen of users, whoever changes it.
"""

import hashlib
import hmac
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import Connection, func, or_, select, true

from server.auth.accounts import Accounts
from server.auth.database.tables import users_table, versions_table
from server.auth.passwords import check_password, hash_password, is_outdated
from server.auth.user import Changes, User, name_key, plain_address, plain_name
from server.documents.ids import new_document_id
from server.documents.timestamps import now
from server.errors import BusyError, TakenError

RESET_HOURS, CONFIRM_HOURS = 1, 72  # how long a mailed code is valid
_LARGEST_ID = 2**31 - 1
_u = users_table.c
_number = select(versions_table.c.number).where(versions_table.c.name == users_table.name).scalar_subquery()


VERSION = "users"  # the key of the version


@dataclass(frozen=True, slots=True)
class _Version:
    number: int


def _user(row: Any) -> User:
    return User(**{column.name: getattr(row, column.name) for column in fields(User)})


class Users:
    """The users of one site."""

    def __init__(self, accounts: Accounts) -> None:
        self.engine, self._accounts = accounts.engine, accounts

    @property
    def version(self) -> int:
        """A number that grows with every change of what can be seen of some user, as last read."""
        read = self._accounts.known.get(VERSION, self._read_version)
        return read.number if read else 0

    def _read_version(self, _: str) -> "_Version":
        with self.engine.connect() as connection:
            return _Version(connection.execute(select(_number)).scalar_one())

    @contextmanager
    def _changing(self, user_id: int | None = None) -> Iterator[Connection]:
        """A transaction that changes what can be seen of users: one at a time, and each is counted.

        Who was there before has a number, which is told to all who may know the user.
        """
        with self._accounts.changing() as (connection, changed):
            changed += [VERSION] if user_id is None else [VERSION, _key(user_id)]
            counted = versions_table.update().where(versions_table.c.name == users_table.name)
            connection.execute(counted.values(number=versions_table.c.number + 1))
            yield connection

    def all(self) -> list[User]:
        """Every user, in the order of their creation."""
        with self.engine.connect() as connection:
            return [_user(row) for row in connection.execute(users_table.select().order_by(_u.id))]

    def count(self) -> int:
        """How many there are."""
        with self.engine.connect() as connection:
            return int(connection.execute(select(func.count()).select_from(users_table)).scalar_one())

    def changes(self, version: int) -> Changes:
        """The users that were made or changed after a version; all of them after version 0."""
        found = users_table.select().where(_u.version > version if version else true()).order_by(_u.id)
        with self.engine.connect() as connection:
            # The version is read first: a user who changes meanwhile is found again the next time.
            now_ = int(connection.execute(select(_number)).scalar_one())
            users = [_user(row) for row in connection.execute(found)]
            count = int(connection.execute(select(func.count()).select_from(users_table)).scalar_one())
        return Changes(users, count, now_)

    def get(self, user_id: int) -> User | None:
        """The user with a number."""
        if user_id > _LARGEST_ID:
            return None
        with self.engine.connect() as connection:
            row = connection.execute(users_table.select().where(_u.id == user_id)).first()
        return _user(row) if row else None

    def known(self, user_id: int, *, waits: bool = True, anew: bool = False) -> User | None:
        """The user with a number, as last read (`server.auth.identity_cache`), to tell who asks.

        Raises UnavailableError, and Postponed where the thread must not wait.
        """
        return self._accounts.known.get(_key(user_id), self._read, waits=waits, anew=anew)

    def _read(self, key: str) -> User | None:
        return self.get(int(key.partition(" ")[2]))

    def named(self, identifier: str) -> User | None:
        """The user with a name or e-mail address: those that a login takes."""
        row = self._named(identifier)
        return _user(row) if row else None

    def resembling(self, identifier: str) -> User | None:
        """The user with a name or e-mail address, or with a name that people would take for it.

        An address is its owner's, whatever others call themselves.
        """
        name, email = plain_name(identifier), plain_address(identifier)
        # Of a database that an older release made, two names may have one key, which is the older one's.
        same = or_(_u.email == email, _u.username == name, _u.name_key == name_key(identifier))
        best = ((_u.email == email).desc(), (_u.username == name).desc())
        with self.engine.connect() as connection:
            row = connection.execute(users_table.select().where(same).order_by(*best)).first()
        return _user(row) if row else None

    def _named(self, identifier: str) -> Any:
        """The row of a name or address: names tell upper from lower case, as recorded."""
        name, email = plain_name(identifier), plain_address(identifier)
        found = users_table.select().where(or_(_u.username == name, _u.email == email))
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
        """Make a user. Raises TakenError where another has the name or address."""
        timestamp = now()
        row = {
            "document_id": new_document_id(),
            "username": plain_name(username),
            "name_key": name_key(username),
            "email": plain_address(email),
            "password": hash_password(password) if password else None,  # Slow: done before the transaction.
            "provider": "local",
            "confirmed": confirmed,
            "blocked": blocked,
            "role": role,
            "sessions": 0,
            "created_at": timestamp,
            "updated_at": timestamp,
        }
        with self._changing() as connection:
            _refuse_taken(connection, 0, row)
            made = users_table.insert().values(**row, version=_number)
            key = connection.execute(made).inserted_primary_key
            assert key is not None
            return _user(connection.execute(users_table.select().where(_u.id == key[0])).one())

    def register(self, username: str, email: str, password: str, *, confirmed: bool) -> User:
        """Make a user who asks to be one. Raises TakenError, which does not tell what is taken."""
        try:
            return self.create(username, email, password, role="authenticated", confirmed=confirmed)
        except TakenError as error:
            raise TakenError() from error

    def update(self, user_id: int, values: dict[str, Any]) -> User | None:
        """Change some columns of a user. Raises TakenError where another has the name or address.

        A new password ends its sessions, and so does a block; what was mailed before a new password or
        address is void.
        """
        changes: dict[str, Any] = {**values, "updated_at": now(), "version": _number}
        if "username" in changes:
            name = str(changes["username"])
            changes["username"], changes["name_key"] = plain_name(name), name_key(name)
        if "email" in changes:
            changes["email"] = plain_address(str(changes["email"]))
            changes["reset_hash"] = changes["confirm_hash"] = None
        if changes.get("password"):
            # Hashing is slow, so it is done before the transaction.
            changes["password"] = hash_password(str(changes["password"]))
            changes["sessions"] = _u.sessions + 1
            changes["reset_hash"] = None
        # This ends the user's sessions for good, even when the user is unblocked later.
        if changes.get("blocked"):
            changes["sessions"] = _u.sessions + 1
        with self._changing(user_id) as connection:
            _refuse_taken(connection, user_id, changes)
            connection.execute(users_table.update().where(_u.id == user_id).values(**changes))
        return self.get(user_id)

    def delete(self, user_id: int) -> User | None:
        """Remove a user; returns who it was."""
        found = self.get(user_id)
        if found:
            with self._changing(user_id) as connection:
                connection.execute(users_table.delete().where(_u.id == user_id))
        return found

    def with_password(self, identifier: str, password: str) -> User | None:
        """The user with a name or address and this password; as slow for one who does not exist."""
        row = self._named(identifier)
        kept = row.password if row else None
        if not check_password(kept, password):
            return None
        if is_outdated(row.password):
            with suppress(BusyError):  # The next login tries again.
                self._renew_hash(row, hash_password(password))
        return _user(row)

    def _renew_hash(self, row: Any, renewed: str) -> None:
        """Keep another hash of the same password; nothing else changes for the user."""
        unchanged = users_table.update().where(_u.id == row.id, _u.password == row.password)
        with self.engine.begin() as connection:
            connection.execute(unchanged.values(password=renewed))

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
        with self.engine.connect() as connection:
            row = connection.execute(users_table.select().where(column == hashed)).first()
        if row is None or not hmac.compare_digest(getattr(row, column.name), hashed):
            return None
        if int(code.rpartition(".")[2]) <= time.time():
            return None
        update = users_table.update().where(_u.id == row.id, column == hashed)
        with self._changing(row.id) as connection:
            done = connection.execute(update.values({**values, column.name: None, "version": _number}))
        return _user(row) if done.rowcount else None


def _key(user_id: int) -> str:
    return f"user {user_id}"


def _refuse_taken(connection: Connection, user_id: int, row: dict[str, Any]) -> None:
    """Raise TakenError where another user has the name or address of a row, as a name or an address.

    Both are identifiers to log in with: each must lead to one account only.
    """
    for field in ("email", "username"):
        if field in row:
            same = (row[field], name_key(row[field]), plain_address(row[field]))
            anywhere = or_(_u.email.in_(same), _u.username.in_(same), _u.name_key.in_(same))
            if connection.execute(select(_u.id).where(_u.id != user_id, anywhere)).first():
                raise TakenError(f"{field.capitalize()} already taken")


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
