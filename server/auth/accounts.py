"""API tokens: who may use a site without being one of its users.

A token is 256 random bits, shown once; only its SHA-256 is kept, which is enough for a secret that
nobody can guess. Revoking one is seen by the very next request of a running server; where accounts are in
PostgreSQL, within FRESH_S by the processes that do not hear of it at once (`server.auth.identity_cache`).
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select
from sqlalchemy.exc import IntegrityError

from server.auth.database.connections import Connections
from server.auth.database.opening import Watch, open_database
from server.auth.database.tables import site_table, tokens_table
from server.auth.identity_cache import Known
from server.auth.permissions import Actor
from server.database.address import is_postgres
from server.database.file import OpenedFile, database_file
from server.database.notices import ACCOUNTS, NOTIFY, message
from server.documents.timestamps import from_datetime, now
from server.errors import SetupError

KINDS = ("full-access", "read-only", "custom")
PREFIX = "quire_"


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token: never the token itself."""

    name: str
    kind: str
    permissions: tuple[str, ...]
    created_at: str
    expires_at: str | None

    @property
    def expired(self) -> bool:
        """Whether its time is over."""
        return self.expires_at is not None and self.expires_at <= now()

    def actor(self) -> Actor:
        """The identity of a request that carries it."""
        return Actor(
            f"token:{self.name}",
            frozenset(self.permissions),
            everything=self.kind == "full-access",
            reading=self.kind == "read-only",
        )


class Accounts:
    """The accounts of one site. Safe to use from many threads and processes at once."""

    def __init__(self, root: Path, url: str = "") -> None:
        self.root, self.url = root, url
        self.engine = open_database(root, url)
        self.file = OpenedFile(None if url else database_file(root))
        self._watch = Watch(self.engine)
        self.known = Known(self._watch)

    @property
    def is_read_only(self) -> bool:
        """Whether a database elsewhere is known to refuse to write."""
        return isinstance(pool := self.engine.pool, Connections) and pool.outage.read_only

    @cached_property
    def site_id(self) -> str:
        """What tells these accounts from those of any other site, for as long as there are any."""
        with self.engine.connect() as connection:
            return str(connection.execute(select(site_table.c.id)).scalar_one())

    def create_token(
        self, name: str, kind: str, permissions: Iterable[str] = (), expires: timedelta | None = None
    ) -> str:
        """Make a token and return it; it can't be shown again. SetupError where the name is taken."""
        token = PREFIX + secrets.token_hex(32)
        row = {
            "hash": _hash(token),
            "name": name,
            "kind": kind,
            "permissions": " ".join(sorted(set(permissions))),
            "created_at": now(),
            "expires_at": from_datetime(datetime.now(UTC) + expires) if expires else None,
        }
        try:
            with self.engine.begin() as connection:
                connection.execute(tokens_table.insert(), row)
        except IntegrityError as error:
            fix = f"quire token revoke {name}, or choose another name"
            raise SetupError("token", None, f'there is a token named "{name}"', fix) from error
        return token

    def tokens(self) -> list[Token]:
        """All tokens, by name."""
        with self.engine.connect() as connection:
            rows = connection.execute(tokens_table.select().order_by(tokens_table.c.name)).all()
        return [_token(row) for row in rows]

    def revoke_token(self, name: str) -> bool:
        """Delete a token; False where there is none of that name."""
        deleted = tokens_table.delete().where(tokens_table.c.name == name).returning(tokens_table.c.hash)
        with self.changing() as (connection, changed):
            changed.extend(map(_key, connection.execute(deleted).scalars()))
        return bool(changed)

    def find_token(self, text: str, *, waits: bool = True) -> Token | None:
        """The token that a request carries, if it is known and not expired.

        Raises UnavailableError, and Postponed where the thread must not wait (`server.auth.identity_cache`).
        """
        token = self.known.get(_key(_hash(text)), self._read, waits=waits)
        return token if token and not token.expired else None

    @contextmanager
    def changing(self) -> Iterator[tuple[Connection, list[str]]]:
        """A transaction, and a list for the keys of what it changes that somebody may know (`known`)."""
        changed: list[str] = []
        try:
            with self.engine.begin() as connection:
                yield connection, changed
                if is_postgres(self.url):
                    for key in changed:
                        connection.exec_driver_sql(NOTIFY, (message(ACCOUNTS, key),))
        finally:
            self.known.forget(*changed)

    def close(self) -> None:
        """Let go of the database."""
        self._watch.close()
        self.file.close()
        self.engine.dispose()

    def _read(self, key: str) -> Token | None:
        key = key.partition(" ")[2]
        with self.engine.connect() as connection:
            row = connection.execute(tokens_table.select().where(tokens_table.c.hash == key)).first()
        return _token(row) if row is not None and hmac.compare_digest(row.hash, key) else None


def _key(hashed: str) -> str:
    return f"token {hashed}"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _token(row: Any) -> Token:
    return Token(row.name, row.kind, tuple(row.permissions.split()), row.created_at, row.expires_at)
