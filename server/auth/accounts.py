"""API tokens: who may use a site without being one of its users.

A token is 256 random bits, shown once; only its SHA-256 is kept, which is enough for a secret that
nobody can guess. Revoking one is seen by the very next request of a running server.
"""

import hashlib
import hmac
import secrets
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError

from server.auth.database.file import OpenedFile, database_file
from server.auth.database.opening import Watch, open_database
from server.auth.database.tables import site_table, tokens_table
from server.auth.permissions import Actor
from server.bounded import Cache, size_of
from server.documents.timestamps import from_datetime, now
from server.errors import SetupError

KINDS = ("full-access", "read-only", "custom")
PREFIX = "quire_"
MAX_KNOWN_BYTES = 4 * 1024 * 1024  # about 10,000 tokens that were sent, whether they are known or not


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
        self.root = root
        self.engine = open_database(root, url)
        self.file = OpenedFile(None if url else database_file(root))
        self._watches: list[Watch] = []
        self._watch = self.watch()
        self._known: Cache[str, tuple[Token | None]] = Cache(MAX_KNOWN_BYTES, _size)
        self._lock = threading.Lock()

    def watch(self) -> Watch:
        """What tells whether somebody has changed an account, for as long as this is open."""
        self._watches.append(Watch(self.engine))
        return self._watches[-1]

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
        with self.engine.begin() as connection:
            return connection.execute(tokens_table.delete().where(tokens_table.c.name == name)).rowcount > 0

    def find_token(self, text: str) -> Token | None:
        """The token that a request carries, if it is known and not expired."""
        key = _hash(text)
        # Nothing is kept of a database elsewhere; and who waits for it makes nobody else wait.
        token = self._kept(key) if self._watch.tells else self._read(key)
        return token if token and not token.expired else None

    def _kept(self, key: str) -> Token | None:
        """The token of a hash, read where somebody has changed the database since it was read last."""
        with self._lock:
            if self._watch.changed():
                self._known.clear()
            known = self._known.get(key)
            if known is None:
                known = (self._read(key),)
                self._known.put(key, known)
            return known[0]

    def close(self) -> None:
        """Let go of the database."""
        for watch in self._watches:
            watch.close()
        self.file.close()
        self.engine.dispose()

    def _read(self, key: str) -> Token | None:
        with self.engine.connect() as connection:
            row = connection.execute(tokens_table.select().where(tokens_table.c.hash == key)).first()
        return _token(row) if row is not None and hmac.compare_digest(row.hash, key) else None


def _size(key: str, known: tuple[Token | None]) -> int:
    token = known[0]
    return 300 + size_of(key) + (size_of(token.permissions) if token else 0)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _token(row: Any) -> Token:
    return Token(row.name, row.kind, tuple(row.permissions.split()), row.created_at, row.expires_at)
