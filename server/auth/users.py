"""Users in the accounts database, with their passwords and emailed codes."""
# A user's JSON Web Tokens contain the user's `sessions` number. Incrementing this number invalidates older
# tokens.

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
from server.auth.user import User, UserChanges, name_key, plain_address, plain_name
from server.config.model import DEFAULTS
from server.config.reader import survey_settings
from server.database.engine import Connection
from server.documents.ids import new_document_id
from server.documents.timestamps import now
from server.errors import BusyError, DuplicateUserError, PreconditionError, ValidationError

RESET_CODE_TTL_HOURS, CONFIRM_CODE_TTL_HOURS, INVITATION_CODE_TTL_HOURS = 1, 72, 7 * 24
_MAX_ID = 2**31 - 1
_COLUMNS = ", ".join(field.name for field in fields(User))
_SELECT = f"SELECT {_COLUMNS} FROM users"
_NUMBER = "(SELECT number FROM versions WHERE name = 'users')"
# PostgreSQL allows several write transactions at once. Each one that changes users updates this row first.
_LOCK = "SELECT number FROM versions WHERE name = 'users' FOR UPDATE"
_CHANGEABLE_COLUMNS = {field.name for field in fields(User)} | {
    "name_key",
    "password",
    "reset_hash",
    "confirm_hash",
}
# The columns that `create` inserts, in the same order as its values.
_INSERTED_COLUMNS = "document_id, username, name_key, email, password, provider, confirmed, blocked, role"

VERSION_KEY = "users"


@dataclass(frozen=True, slots=True)
class _Version:
    number: int


def _user(row: Any) -> User:
    user_id, document_id, username, email, provider, confirmed, blocked, *rest = row
    # SQLite returns numbers instead of booleans.
    return User(user_id, document_id, username, email, provider, bool(confirmed), bool(blocked), *rest)


def _count(connection: Connection) -> int:
    return int(connection.execute("SELECT count(*) FROM users").fetchone()[0])


def _count_by_role(connection: Connection) -> dict[str, int]:
    found = connection.execute("SELECT role, count(*) FROM users GROUP BY role")
    return {role: int(number) for role, number in found}


def _number(connection: Connection) -> int:
    return int(connection.execute(f"SELECT {_NUMBER}").fetchone()[0])


class Users:
    """A site's users."""

    def __init__(self, accounts: Accounts) -> None:
        self.engine, self._accounts = accounts.engine, accounts

    @property
    def version(self) -> int:
        # The version increases with each visible change to a user. The cached number may be out of date.
        read = self._accounts.known.get(VERSION_KEY, self._read_version)
        return read.number if read else 0

    def _read_version(self, _: str) -> "_Version":
        with self.engine.reading() as connection:
            return _Version(_number(connection))

    @contextmanager
    def _write_transaction(self, user_id: int | None = None) -> Iterator[Connection]:
        """Context manager for a transaction that changes a user, or adds one if `user_id` is None."""
        with self._accounts.write_transaction() as (connection, changed):
            changed += [VERSION_KEY] if user_id is None else [VERSION_KEY, _key(user_id)]
            connection.execute("UPDATE versions SET number = number + 1 WHERE name = 'users'")
            yield connection

    def all(self) -> list[User]:
        with self.engine.reading() as connection:
            return [_user(row) for row in connection.execute(f"{_SELECT} ORDER BY id")]

    def count(self) -> int:
        with self.engine.reading() as connection:
            return _count(connection)

    def count_by_role(self) -> dict[str, int]:
        with self.engine.reading() as connection:
            return _count_by_role(connection)

    @contextmanager
    def locked(self) -> Iterator[dict[str, int]]:
        """Prevent changes to users during the `with` block. Yields the number of users by role."""
        with self.engine.writing(lock_statement=_LOCK) as connection:
            yield _count_by_role(connection)

    def changes(self, version: int) -> UserChanges:
        """Return the users that have changed since a version of the list. For version 0, return all users."""
        changed = "WHERE version > ?" if version else ""
        values = [version] if version else []
        with self.engine.reading() as connection:
            now_ = _number(connection)
            found = connection.execute(f"{_SELECT} {changed} ORDER BY id", values)
            return UserChanges([_user(row) for row in found], _count(connection), now_)

    def get(self, user_id: int) -> User | None:
        if user_id > _MAX_ID:
            return None
        with self.engine.reading() as connection:
            row = connection.execute(f"{_SELECT} WHERE id = ?", (user_id,)).fetchone()
        return _user(row) if row else None

    def get_cached(self, user_id: int, *, waits: bool = True, bypass_cache: bool = False) -> User | None:
        """Return a user, or None if there is no such user.

        Raises the same errors as `CredentialCache.get`.
        """
        return self._accounts.known.get(_key(user_id), self._read, waits=waits, bypass_cache=bypass_cache)

    def _read(self, key: str) -> User | None:
        return self.get(int(key.partition(" ")[2]))

    def find(self, identifier: str) -> User | None:
        row = self._find_row(identifier)
        return _user(row[1:]) if row else None

    def find_by_identifier(self, identifier: str) -> User | None:
        """Find a user by name or email address. Look-alike names count as equal."""
        # If the identifier is one user's email address and another user's name, the email address wins.
        name, email = plain_name(identifier), plain_address(identifier)
        # In databases of older releases, the names of two users can look alike. In that case, only the older
        # user's row has the name key, so the name itself is also compared.
        statement = (
            f"{_SELECT} WHERE email = ? OR username = ? OR name_key = ?"
            " ORDER BY email = ? DESC, username = ? DESC"
        )
        with self.engine.reading() as connection:
            found = connection.execute(statement, (email, name, name_key(identifier), email, name))
            row = found.fetchone()
        return _user(row) if row else None

    def _find_row(self, identifier: str) -> Any:
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
        reset_code: str = "",
    ) -> User:
        """Create a user.

        Raises DuplicateUserError if the name or the email address is taken, and ValidationError if the role
        does not exist.
        """
        name, address, timestamp = plain_name(username), plain_address(email), now()
        row = (
            new_document_id(),
            name,
            name_key(username),
            address,
            hash_password(password)
            if password
            else None,  # Hashing is slow, so it is done before the transaction.
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
        with self._write_transaction() as connection:
            self._refuse_missing_role(role)
            _refuse_taken(connection, 0, {"email": address, "username": name})
            (made,) = connection.execute(statement, row).fetchall()
            user = _user(made)
            if reset_code:
                _put_code(connection, user, "reset_hash", reset_code)
            return user

    def invite(self, username: str, email: str, *, role: str) -> tuple[User, str]:
        """Create a user without a password. Return the user and the invitation code.

        Raises the same errors as `create`.
        """
        code = _new_code(INVITATION_CODE_TTL_HOURS)
        return self.create(username, email, None, role=role, confirmed=True, reset_code=code), code

    def register(self, username: str, email: str, password: str, *, confirmed: bool) -> User:
        # The error must not reveal whether the name or the email address is taken.
        try:
            return self.create(username, email, password, role="authenticated", confirmed=confirmed)
        except DuplicateUserError as error:
            raise DuplicateUserError() from error

    def update(self, user_id: int, values: dict[str, Any], if_match: str = "") -> User | None:
        """Change columns of a user. Return the updated user, or None if there is no such user.

        Changing the password or role, or blocking or unblocking the user, ends all of the user's sessions
        and invalidates any password reset code. Changing the email address invalidates all emailed codes,
        but does not end sessions.

        Raises PreconditionError if `if_match` is not "" and differs from the user's `updated_at`. Also raises
        the same errors as `create`.
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
        with self._write_transaction(user_id) as connection:
            _refuse_changed(connection, user_id, if_match)
            self._refuse_missing_role(changes.get("role", ""))
            _refuse_taken(connection, user_id, changes)
            # Otherwise, someone who was once sent a code for the user could use it to get the new role.
            ends = bool(changes.get("password")) or _changes_access(connection, user_id, changes)
            if ends:
                changes["reset_hash"] = None
            _update(connection, changes, "sessions = sessions + 1" if ends else "", user_id)
        return self.get(user_id)

    def _refuse_missing_role(self, role: str) -> None:
        # The caller has checked that the role exists, but it may have been deleted since (in `locked`).
        if not role or role in DEFAULTS.roles:
            return
        settings, wrong = survey_settings(self._accounts.root)
        if not wrong and role not in settings.roles:
            raise ValidationError(f"The role {role} does not exist")

    def end_sessions(self, user_id: int) -> None:
        with self._write_transaction(user_id) as connection:
            # `updated_at` stays, because the user's own values have not changed.
            _update(connection, {}, "sessions = sessions + 1", user_id)

    def delete(self, user_id: int) -> User | None:
        found = self.get(user_id)
        if found:
            with self._write_transaction(user_id) as connection:
                connection.execute("DELETE FROM users WHERE id = ?", (user_id,))
        return found

    def authenticate(self, identifier: str, password: str) -> User | None:
        # The check takes just as long if there is no such user.
        row = self._find_row(identifier)
        kept: str = row[0] or "" if row else ""
        if not check_password(kept or None, password):
            return None
        user = _user(row[1:])
        if is_outdated(kept):
            with suppress(BusyError):  # If the server is too busy, the hash is renewed at a later login.
                self._renew_hash(user.id, kept, hash_password(password))
        return user

    def _renew_hash(self, user_id: int, kept: str, renewed: str) -> None:
        # The password may have been changed since it was checked.
        statement = "UPDATE users SET password = ? WHERE id = ? AND password = ?"
        with self.engine.writing() as connection:
            connection.execute(statement, (renewed, user_id, kept))

    # --- codes in emails ------------------------------------------------------------------------

    def invitation_code(self, user: User) -> str:
        # An invitation is a password reset code that lasts longer.
        return self._code(user, "reset_hash", INVITATION_CODE_TTL_HOURS)

    def ids_without_password(self) -> set[int]:
        with self.engine.reading() as connection:
            return {row[0] for row in connection.execute("SELECT id FROM users WHERE password IS NULL")}

    def reset_code(self, user: User) -> str:
        return self._code(user, "reset_hash", RESET_CODE_TTL_HOURS)

    def spend_reset_code(self, code: str) -> User | None:
        """Use up a password reset code, and return its user.

        Return None if the code is invalid or has expired.
        """
        return self._spend(code, "reset_hash")

    def confirm_code(self, user: User) -> str:
        return self._code(user, "confirm_hash", CONFIRM_CODE_TTL_HOURS)

    def spend_confirm_code(self, code: str) -> User | None:
        """Use up a confirmation code: mark its user's email address as confirmed.

        Return the user's data from before this change, or None if the code is invalid or has expired.
        """
        return self._spend(code, "confirm_hash", "confirmed = ?, ", True)

    def _code(self, user: User, column: str, hours: float) -> str:
        code = _new_code(hours)
        with self.engine.writing() as connection:
            _put_code(connection, user, column, code)
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
        with self._write_transaction(user.id) as connection:
            done = connection.execute(update, (*values, user.id, hashed)).rowcount
        return user if done else None


def _key(user_id: int) -> str:
    return f"user {user_id}"


def _update(connection: Connection, changes: dict[str, Any], also: str, user_id: int) -> None:
    # The column names become part of the SQL statement, so only known names are allowed.
    assert changes.keys() <= _CHANGEABLE_COLUMNS, changes.keys()
    parts = [*(f"{name} = ?" for name in changes), f"version = {_NUMBER}", *([also] if also else [])]
    connection.execute(f"UPDATE users SET {', '.join(parts)} WHERE id = ?", (*changes.values(), user_id))


def _changes_access(connection: Connection, user_id: int, changes: dict[str, Any]) -> bool:
    found = connection.execute("SELECT role, blocked FROM users WHERE id = ?", (user_id,)).fetchone()
    if found is None:
        return False
    role, blocked = found
    return bool(changes.get("role", role) != role or bool(changes.get("blocked", blocked)) != bool(blocked))


def _refuse_changed(connection: Connection, user_id: int, if_match: str) -> None:
    found = connection.execute("SELECT updated_at FROM users WHERE id = ?", (user_id,)).fetchone()
    if if_match and found and found[0] != if_match:
        raise PreconditionError("The user has changed since you read it", {"version": found[0]})


def _refuse_taken(connection: Connection, user_id: int, row: dict[str, Any]) -> None:
    # Users can sign in with either their name or their email address. A name must therefore also differ from
    # all other users' email addresses, and vice versa.
    anywhere = "email IN (?, ?, ?) OR username IN (?, ?, ?) OR name_key IN (?, ?, ?)"
    statement = f"SELECT id FROM users WHERE id != ? AND ({anywhere})"
    for field in ("email", "username"):
        if field in row:
            same = (row[field], name_key(row[field]), plain_address(row[field]))
            if connection.execute(statement, (user_id, *same * 3)).fetchone():
                raise DuplicateUserError(f"{field.capitalize()} already taken")


def _new_code(hours: float) -> str:
    # The hash covers the expiry time at the end of the code, so the time can't be forged.
    return f"{secrets.token_urlsafe(32)}.{int(time.time() + hours * 3600)}"


def _put_code(connection: Connection, user: User, column: str, code: str) -> None:
    connection.execute(f"UPDATE users SET {column} = ? WHERE id = ?", (_hash(code), user.id))


def _hash(code: str) -> str:
    return hashlib.sha256(code.encode()).hexdigest()
