"""Logins, which clients can renew with refresh tokens if `auth.refresh` is enabled."""

import secrets
from dataclasses import astuple, fields
from datetime import UTC, datetime, timedelta

from server.auth.accounts import Accounts
from server.auth.login_record import MAX_DEVICE_CHARS, Login
from server.auth.user import User
from server.documents.timestamps import from_datetime, now

_NAMES = tuple(field.name for field in fields(Login))
_COLUMNS = ", ".join(_NAMES)


class Logins:
    """The logins of a site's users."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts, self._engine = accounts, accounts.engine

    def begin(
        self, user: User, idle: timedelta, longest: timedelta, device_id: str | None, device_name: str | None
    ) -> Login:
        """Create a login that ends after `longest`, or earlier if it is not renewed within `idle`."""
        begins = datetime.now(UTC)
        at, ends = from_datetime(begins), from_datetime(begins + longest)
        login = Login(
            secrets.token_hex(16),
            user.id,
            user.sessions,
            0,
            device_id[:MAX_DEVICE_CHARS] if device_id else None,
            device_name[:MAX_DEVICE_CHARS] if device_name else None,
            at,
            at,
            min(from_datetime(begins + idle), ends),
            ends,
        )
        marks = ", ".join("?" * len(_NAMES))
        with self._engine.writing() as connection:
            connection.execute("DELETE FROM logins WHERE expires_at <= ?", (at,))
            connection.execute(f"INSERT INTO logins ({_COLUMNS}) VALUES ({marks})", astuple(login))
        return login

    def renew(self, login_id: str, turn: int, idle: timedelta) -> Login | None:
        """Renew a login that has been renewed `turn` times so far.

        Return None if it has ended, or has been renewed a different number of times.
        """
        login = self.get(login_id)
        if login is None or login.turn != turn:
            return None
        expires_at = min(from_datetime(datetime.now(UTC) + idle), login.ends_at)
        update = "UPDATE logins SET turn = ?, renewed_at = ?, expires_at = ? WHERE id = ? AND turn = ?"
        with self._engine.writing() as connection:
            done = connection.execute(update, (turn + 1, now(), expires_at, login_id, turn)).rowcount
        return self.get(login_id) if done else None

    def get(self, login_id: str) -> Login | None:
        found = self._find("id", login_id)
        return found[0] if found else None

    def get_cached(self, login_id: str, *, waits: bool = True, bypass_cache: bool = False) -> Login | None:
        """Return a login, or None if it does not exist or has ended.

        Raises the same errors as `CredentialCache.get`.
        """
        login = self._accounts.known.get(_key(login_id), self._read, waits=waits, bypass_cache=bypass_cache)
        return login if login and login.expires_at > now() else None

    def _read(self, key: str) -> Login | None:
        return self.get(key.partition(" ")[2])

    def list_for_user(self, user_id: int) -> list[Login]:
        return self._find("user_id", user_id)

    def _find(self, column: str, value: str | int) -> list[Login]:
        columns = ", ".join(f"logins.{name}" for name in _NAMES)
        statement = (
            f"SELECT {columns} FROM logins"
            " JOIN users ON users.id = logins.user_id AND users.sessions = logins.sessions"
            f" WHERE logins.{column} = ? AND expires_at > ? ORDER BY renewed_at DESC"
        )
        with self._engine.reading() as connection:
            return [Login(*row) for row in connection.execute(statement, (value, now()))]

    def count_by_user(self) -> dict[int, int]:
        statement = (
            "SELECT user_id, count(*) FROM logins"
            " JOIN users ON users.id = logins.user_id AND users.sessions = logins.sessions"
            " WHERE expires_at > ? GROUP BY user_id"
        )
        with self._engine.reading() as connection:
            return {row[0]: int(row[1]) for row in connection.execute(statement, (now(),))}

    def end(self, user_id: int, login_id: str) -> bool:
        return self._delete(user_id, "id", login_id)

    def end_all(self, user_id: int, device_id: str | None = None) -> None:
        self._delete(user_id, "device_id", device_id or "")

    def _delete(self, user_id: int, column: str, value: str) -> bool:
        statement, values = "DELETE FROM logins WHERE user_id = ?", [user_id, *([value] if value else [])]
        statement += f" AND {column} = ?" if value else ""
        with self._accounts.write_transaction() as (connection, changed):
            deleted = connection.execute(f"{statement} RETURNING id", values)
            changed.extend(_key(login_id) for (login_id,) in deleted)
        return bool(changed)


def _key(login_id: str) -> str:
    return f"login {login_id}"
