"""Logins that are renewed: what stands behind the refresh tokens of `auth.refresh`.

A login is one row of the accounts database from its beginning to its end. Each refresh token is good
for one renewal, which counts `turn` up: of two that come with the same token, one wins.
"""

import secrets
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import select

from server.auth.accounts import Accounts
from server.auth.database.tables import logins_table, users_table
from server.auth.login import Login
from server.auth.user import User
from server.documents.timestamps import from_datetime, now

LONGEST_DEVICE = 200
_l = logins_table.c


class Logins:
    """The logins of the users of one site."""

    def __init__(self, accounts: Accounts) -> None:
        self._accounts, self._engine = accounts, accounts.engine

    def begin(
        self, user: User, idle: timedelta, longest: timedelta, device_id: str | None, device_name: str | None
    ) -> Login:
        """A new login; it ends after `idle` where nobody renews it, and after `longest` in any case."""
        begins = datetime.now(UTC)
        at, ends = from_datetime(begins), from_datetime(begins + longest)
        login = Login(
            secrets.token_hex(16),
            user.id,
            user.sessions,
            0,
            device_id[:LONGEST_DEVICE] if device_id else None,
            device_name[:LONGEST_DEVICE] if device_name else None,
            at,
            at,
            min(from_datetime(begins + idle), ends),
            ends,
        )
        with self._engine.begin() as connection:
            connection.execute(logins_table.delete().where(_l.expires_at <= at))
            connection.execute(logins_table.insert(), _row(login))
        return login

    def renew(self, login_id: str, turn: int, idle: timedelta) -> Login | None:
        """The login after one more renewal; None where it has ended, or somebody was first."""
        login = self.get(login_id)
        if login is None or login.turn != turn:
            return None
        expires_at = min(from_datetime(datetime.now(UTC) + idle), login.ends_at)
        update = logins_table.update().where(_l.id == login_id, _l.turn == turn)
        values = {"turn": turn + 1, "renewed_at": now(), "expires_at": expires_at}
        with self._engine.begin() as connection:
            done = connection.execute(update.values(**values)).rowcount
        return self.get(login_id) if done else None

    def get(self, login_id: str) -> Login | None:
        """A login that has not ended, whose user is still there and has the password that it began with."""
        found = self._find(_l.id == login_id)
        return found[0] if found else None

    def known(self, login_id: str, *, waits: bool = True, anew: bool = False) -> Login | None:
        """A login that has not ended, as last read (`server.auth.known`), to tell who asks.

        Raises UnavailableError, and Postponed where the thread must not wait.
        """
        login = self._accounts.known.get(_key(login_id), self._read, waits=waits, anew=anew)
        return login if login and login.expires_at > now() else None

    def _read(self, key: str) -> Login | None:
        return self.get(key.partition(" ")[2])

    def of_user(self, user_id: int) -> list[Login]:
        """The logins of a user that have not ended, the last renewed first."""
        return self._find(_l.user_id == user_id)

    def _find(self, condition: Any) -> list[Login]:
        same = (users_table.c.id == _l.user_id) & (users_table.c.sessions == _l.sessions)
        found = select(logins_table).join(users_table, same)
        found = found.where(condition, _l.expires_at > now())
        with self._engine.connect() as connection:
            rows = connection.execute(found.order_by(_l.renewed_at.desc())).all()
        return [Login(**{f.name: getattr(row, f.name) for f in fields(Login)}) for row in rows]

    def end(self, user_id: int, login_id: str) -> bool:
        """End a login of a user; False where the user has no such login."""
        return self._delete(_l.user_id == user_id, _l.id == login_id)

    def end_all(self, user_id: int, device_id: str | None = None) -> None:
        """End the logins of a user, or those on one device."""
        on_device = [_l.device_id == device_id] if device_id else []
        self._delete(_l.user_id == user_id, *on_device)

    def _delete(self, *conditions: Any) -> bool:
        deleted = logins_table.delete().where(*conditions).returning(_l.id)
        with self._accounts.changing() as (connection, changed):
            changed.extend(map(_key, connection.execute(deleted).scalars()))
        return bool(changed)


def _key(login_id: str) -> str:
    return f"login {login_id}"


def _row(login: Login) -> dict[str, Any]:
    return {field.name: getattr(login, field.name) for field in fields(Login)}
