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

from server.auth.accounts import Accounts
from server.auth.passwords import check_password, hash_password, is_outdated
from server.auth.user import Changes, User, name_key, plain_address, plain_name
from server.database.engine import Connection
from server.documents.ids import new_document_id
from server.documents.timestamps import now
from server.errors import BusyError, TakenError

RESET_CODE_TTL_HOURS, CONFIRM_CODE_TTL_HOURS = 1, 72
_MAX_ID = 2**31 - 1
_COLUMNS = ", ".join(field.name for field in fields(User))
_SELECT = f"SELECT {_COLUMNS} FROM users"
_NUMBER = "(SELECT number FROM versions WHERE name = 'users')"
_CHANGEABLE_COLUMNS = {field.name for field in fields(User)} | {
    "name_key",
    "password",
    "reset_hash",
    "confirm_hash",
}
# How a user is made; the values are in the order of these columns.
_INSERTED_COLUMNS = "document_id, username, name_key, email, password, provider, confirmed, blocked, role"

VERSION_KEY = "users"


@dataclass(frozen=True, slots=True)
class _Version:
    number: int


def _user(row: Any) -> User:
    user_id, document_id, username, email, provider, confirmed, blocked, *rest = row
    # SQLite has numbers for booleans.
    return User(user_id, document_id, username, email, provider, bool(confirmed), bool(blocked), *rest)


def _count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM users").fetchone()[0])


def _number(connection: Connection) -> int:
    return int(connection.execute(f"SELECT {_NUMBER}").fetchone()[0])


class Users:
    """The users of one site."""

    def __init__(self, accounts: Accounts) -> None:
        self.engine, self._accounts = accounts.engine, accounts

    @property
    def version(self) -> int:
        """A number that grows with every change of what can be seen of some user, as last read."""
        read = self._accounts.known.get(VERSION_KEY, self._read_version)
        return read.number if read else 0

    def _read_version(self, _: str) -> "_Version":
        with self.engine.reading() as connection:
            return _Version(_number(connection))

    @contextmanager
    def _changing(self, user_id: int | None = None) -> Iterator[Connection]:
        """A transaction that changes what can be seen of users: one at a time, and each is counted.

        Who was there before has a number, which is told to all who may know the user.
        """
        with self._accounts.changing() as (connection, changed):
            changed += [VERSION_KEY] if user_id is None else [VERSION_KEY, _key(user_id)]
            connection.execute("UPDATE versions SET number = number + 1 WHERE name = 'users'")
            yield connection

    def all(self) -> list[User]:
        """Every user, in the order of their creation."""
        with self.engine.reading() as connection:
            return [_user(row) for row in connection.execute(f"{_SELECT} ORDER BY id")]

    def count(self) -> int:
        """How many there are."""
        with self.engine.reading() as connection:
            return _count(connection)

    def changes(self, version: int) -> Changes:
        """The users that were made or changed after a version; all of them after version 0."""
        changed = "WHERE version > ?" if version else ""
        values = [version] if version else []
        with self.engine.reading() as connection:
            now_ = _number(connection)
            found = connection.execute(f"{_SELECT} {changed} ORDER BY id", values)
            return Changes([_user(row) for row in found], _count(connection), now_)

    def get(self, user_id: int) -> User | None:
        """The user with a number."""
        if user_id > _MAX_ID:
            return None
        with self.engine.reading() as connection:
            row = connection.execute(f"{_SELECT} WHERE id = ?", (user_id,)).fetchone()
        return _user(row) if row else None

    def known(self, user_id: int, *, waits: bool = True, anew: bool = False) -> User | None:
        """The user with a number, as last read (`server.auth.identity_cache`), to tell who asks.

        Raises UnavailableError, and NeedsThreadPool where the thread must not wait.
        """
        return self._accounts.known.get(_key(user_id), self._read, waits=waits, anew=anew)

    def _read(self, key: str) -> User | None:
        return self.get(int(key.partition(" ")[2]))

    def named(self, identifier: str) -> User | None:
        """The user with a name or e-mail address: those that a login takes."""
        row = self._find_row(identifier)
        return _user(row[1:]) if row else None

    def resembling(self, identifier: str) -> User | None:
        """Find a user by name or e-mail address, treating look-alike names as equal.

        An address is its owner's, whatever others call themselves.
        """
        name, email = plain_name(identifier), plain_address(identifier)
        # Of a database that an older release made, two names may have one key, which is the older one's.
        statement = (
            f"{_SELECT} WHERE email = ? OR username = ? OR name_key = ?"
            " ORDER BY email = ? DESC, username = ? DESC"
        )
        with self.engine.reading() as connection:
            found = connection.execute(statement, (email, name, name_key(identifier), email, name))
            row = found.fetchone()
        return _user(row) if row else None

    def _find_row(self, identifier: str) -> Any:
        """The password, and then the user, of a name or address.

        Names tell upper from lower case, as recorded.
        """
        name, email = plain_name(identifier), plain_address(identifier)
        statement = (
            f"SELECT password, {_COLUMNS} FROM users WHERE username = ? OR email = ? ORDER BY email = ? DESC"
        )
        with self.engine.reading() as connection:
            return connection.execute(statement, (name, email, email)).fetchone()

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
        name, address, timestamp = plain_name(username), plain_address(email), now()
        row = (
            new_document_id(),
            name,
            name_key(username),
            address,
            hash_password(password) if password else None,  # Slow: done before the transaction.
            "local",
            confirmed,
            blocked,
            role,
            timestamp,
            timestamp,
        )
        marks = ", ".join("?" * len(row))
        statement = f"INSERT INTO users ({_INSERTED_COLUMNS}, created_at, updated_at, sessions, version)"
        statement += f" VALUES ({marks}, 0, {_NUMBER}) RETURNING {_COLUMNS}"
        with self._changing() as connection:
            _refuse_taken(connection, 0, {"email": address, "username": name})
            (made,) = connection.execute(statement, row).fetchall()
            return _user(made)

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
        changes: dict[str, Any] = {**values, "updated_at": now()}
        if "username" in changes:
            name = str(changes["username"])
            changes["username"], changes["name_key"] = plain_name(name), name_key(name)
        if "email" in changes:
            changes["email"] = plain_address(str(changes["email"]))
            changes["reset_hash"] = changes["confirm_hash"] = None
        if changes.get("password"):
            # Hashing is slow, so it is done before the transaction.
            changes["password"] = hash_password(str(changes["password"]))
            changes["reset_hash"] = None
        # A block ends the user's sessions for good, even when the user is unblocked later.
        ends = bool(changes.get("password") or changes.get("blocked"))
        with self._changing(user_id) as connection:
            _refuse_taken(connection, user_id, changes)
            _update(connection, changes, "sessions = sessions + 1" if ends else "", user_id)
        return self.get(user_id)

    def delete(self, user_id: int) -> User | None:
        """Remove a user; returns who it was."""
        found = self.get(user_id)
        if found:
            with self._changing(user_id) as connection:
                connection.execute("DELETE FROM users WHERE id = ?", (user_id,))
        return found

    def with_password(self, identifier: str, password: str) -> User | None:
        """The user with a name or address and this password; as slow for one who does not exist."""
        row = self._find_row(identifier)
        kept: str = row[0] or "" if row else ""
        if not check_password(kept or None, password):
            return None
        user = _user(row[1:])
        if is_outdated(kept):
            with suppress(BusyError):  # The next login tries again.
                self._renew_hash(user.id, kept, hash_password(password))
        return user

    def _renew_hash(self, user_id: int, kept: str, renewed: str) -> None:
        """Keep another hash of the same password; nothing else changes for the user."""
        statement = "UPDATE users SET password = ? WHERE id = ? AND password = ?"
        with self.engine.writing() as connection:
            connection.execute(statement, (renewed, user_id, kept))

    # --- codes in mails ------------------------------------------------------------------------

    def reset_code(self, user: User) -> str:
        """A new code with which the user's password can be set, once, within RESET_CODE_TTL_HOURS."""
        return self._code(user, "reset_hash", RESET_CODE_TTL_HOURS)

    def spend_reset_code(self, code: str) -> User | None:
        """The user whose reset code this is; the code is of no use afterwards."""
        return self._spend(code, "reset_hash")

    def confirm_code(self, user: User) -> str:
        """A new code with which the user confirms the e-mail address, once, within CONFIRM_CODE_TTL_HOURS."""
        return self._code(user, "confirm_hash", CONFIRM_CODE_TTL_HOURS)

    def spend_confirm_code(self, code: str) -> User | None:
        """The user whose address a code confirms, now confirmed."""
        return self._spend(code, "confirm_hash", "confirmed = ?, ", True)

    def _code(self, user: User, column: str, hours: float) -> str:
        """A code that says until when it is good, which its hash keeps it from changing."""
        code = f"{secrets.token_urlsafe(32)}.{int(time.time() + hours * 3600)}"
        with self.engine.writing() as connection:
            connection.execute(f"UPDATE users SET {column} = ? WHERE id = ?", (_hash(code), user.id))
        return code

    def _spend(self, code: str, column: str, changes: str = "", *values: Any) -> User | None:
        hashed = _hash(code)
        statement = f"SELECT {column}, {_COLUMNS} FROM users WHERE {column} = ?"
        with self.engine.reading() as connection:
            row = connection.execute(statement, (hashed,)).fetchone()
        if row is None or not hmac.compare_digest(row[0], hashed):
            return None
        if int(code.rpartition(".")[2]) <= time.time():
            return None
        user = _user(row[1:])
        update = (
            f"UPDATE users SET {changes}{column} = NULL, version = {_NUMBER} WHERE id = ? AND {column} = ?"
        )
        with self._changing(user.id) as connection:
            done = connection.execute(update, (*values, user.id, hashed)).rowcount
        return user if done else None


def _key(user_id: int) -> str:
    return f"user {user_id}"


def _update(connection: Connection, changes: dict[str, Any], also: str, user_id: int) -> None:
    """Change some columns of a user, and what else a part of a statement says."""
    assert changes.keys() <= _CHANGEABLE_COLUMNS, changes.keys()  # Their names become part of the statement.
    parts = [*(f"{name} = ?" for name in changes), f"version = {_NUMBER}", *([also] if also else [])]
    connection.execute(f"UPDATE users SET {', '.join(parts)} WHERE id = ?", (*changes.values(), user_id))


def _refuse_taken(connection: Connection, user_id: int, row: dict[str, Any]) -> None:
    """Raise TakenError where another user has the name or address of a row, as a name or an address.

    Both are identifiers to log in with: each must lead to one account only.
    """
    anywhere = "email IN (?, ?, ?) OR username IN (?, ?, ?) OR name_key IN (?, ?, ?)"
    statement = f"SELECT id FROM users WHERE id != ? AND ({anywhere})"
    for field in ("email", "username"):
        if field in row:
            same = (row[field], name_key(row[field]), plain_address(row[field]))
            if connection.execute(statement, (user_id, *same * 3)).fetchone():
                raise TakenError(f"{field.capitalize()} already taken")


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
