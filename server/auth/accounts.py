"""The accounts database for a site, and the site's API tokens.

The secret string of an API token consists of 256 random bits. It is shown only once, when the token is
created. The database stores only the string's SHA-256.

When a token is revoked, the next request with this token is rejected. If the database is on PostgreSQL,
workers may accept the token for up to CACHE_TTL_S, until their caches expire (`server.auth.identity_cache`).
"""

import hashlib
import hmac
import logging
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from server.auth.identity_cache import CredentialCache
from server.auth.permissions import TOKEN_PREFIX, Actor
from server.auth.tables import SCHEMA, complete
from server.config.model import FILE
from server.database.address import file_of, is_postgres, is_server
from server.database.engine import Connection, DuplicateError, Engine, Tables, Trouble
from server.database.file import database_file
from server.database.notices import ACCOUNTS, notify
from server.database.opening import make_engine
from server.database.outage import reason_of
from server.database.sqlite import Sqlite, Watch
from server.documents.timestamps import from_datetime, now
from server.errors import SetupError, StorageError, UnavailableError

log = logging.getLogger("bifolio")

KINDS = ("full-access", "read-only", "custom")
NAME = "the accounts database"
_COLUMNS = "name, kind, permissions, created_at, expires_at"
# Maximum number of open connections in each process: for SQLite, and for a database server. A request needs
# a connection only for one or two statements. The maximum for a database server is lower, because PostgreSQL
# limits the connections from all workers on all machines together.
MAX_CONNECTIONS, MAX_CONNECTIONS_TO_SERVER = 64, 15


@dataclass(frozen=True, slots=True)
class Token:
    """An API token, as stored in the database. It does not contain the secret string."""

    name: str
    kind: str
    permissions: tuple[str, ...]
    created_at: str
    expires_at: str | None

    @property
    def expired(self) -> bool:
        """Whether the token has expired."""
        return self.expires_at is not None and self.expires_at <= now()

    def actor(self) -> Actor:
        """Return the actor for requests that contain this token."""
        return Actor(
            f"token:{self.name}",
            frozenset(self.permissions),
            everything=self.kind == "full-access",
            reading=self.kind == "read-only",
        )


class Accounts:
    """The accounts database for one site. An instance can be shared between threads and processes."""

    def __init__(self, root: Path, url: str = "") -> None:
        self.root, self.url = root, url
        self.engine = _open(root, url)
        self._watch = Watch(self.engine) if isinstance(self.engine, Sqlite) else None
        self.known = CredentialCache(self._watch)

    @property
    def is_read_only(self) -> bool:
        """Whether the database server is currently known to reject writes."""
        return self.engine.is_read_only

    @property
    def is_current(self) -> bool:
        """Whether the open database file is still the file on disk. Returns False if the file was removed or
        replaced.
        """
        return self.engine.is_current()

    @cached_property
    def site_id(self) -> str:
        """The random id of this database. Each database has a different id."""
        with self.engine.reading() as connection:
            return str(connection.execute("SELECT id FROM site").fetchone()[0])

    def create_token(
        self, name: str, kind: str, permissions: Iterable[str] = (), expires: timedelta | None = None
    ) -> str:
        """Create a token and return its secret string. Raises SetupError if a token with this name already
        exists.
        """
        token = TOKEN_PREFIX + secrets.token_hex(32)
        ends = from_datetime(datetime.now(UTC) + expires) if expires else None
        row = (_hash(token), name, kind, " ".join(sorted(set(permissions))), now(), ends)
        try:
            with self.engine.writing() as connection:
                connection.execute(f"INSERT INTO tokens (hash, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)
        except DuplicateError as error:
            fix = f"run `bifolio token revoke {name}`, or choose another name"
            raise SetupError("token", None, f'a token named "{name}" already exists', fix) from error
        return token

    def tokens(self) -> list[Token]:
        """Return all tokens, sorted by name."""
        with self.engine.reading() as connection:
            return [_token(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY name")]

    def revoke_token(self, name: str) -> bool:
        """Delete a token. Returns False if there is no token with this name."""
        with self.changing() as (connection, changed):
            deleted = connection.execute("DELETE FROM tokens WHERE name = ? RETURNING hash", (name,))
            changed.extend(_key(hashed) for (hashed,) in deleted)
        return bool(changed)

    def find_token(self, text: str, *, waits: bool = True) -> Token | None:
        """Return the token with the given secret string. Returns None if there is no such token, or if the
        token has expired.

        Raises UnavailableError if the database can't be used. Raises NeedsThreadPool if `waits` is False and
        the token must be read from a database server.
        """
        token = self.known.get(_key(_hash(text)), self._read, waits=waits)
        return token if token and not token.expired else None

    @contextmanager
    def changing(self) -> Iterator[tuple[Connection, list[str]]]:
        """Context manager: start a write transaction.

        Yields the database connection and an empty list. The caller must append the cache key of each changed
        account to this list. After the transaction, the accounts in the list are removed from the caches.
        """
        changed: list[str] = []
        try:
            with self.engine.writing() as connection:
                yield connection, changed
                if is_postgres(self.url):
                    for key in changed:
                        notify(connection, ACCOUNTS, key)
        finally:
            self.known.forget(*changed)

    def close(self) -> None:
        """Close the database."""
        if self._watch is not None:
            self._watch.close()
        self.engine.close()

    def _read(self, key: str) -> Token | None:
        key = key.partition(" ")[2]
        with self.engine.reading() as connection:
            row = connection.execute(f"SELECT hash, {_COLUMNS} FROM tokens WHERE hash = ?", (key,)).fetchone()
        return _token(row[1:]) if row is not None and hmac.compare_digest(row[0], key) else None


def _open(root: Path, url: str) -> Engine:
    """Open the accounts database at `url`. If `url` is empty, open the database file in the site's folder.
    Raises SetupError.
    """
    tables = Tables(SCHEMA, complete, partial(_refuse, url))
    size = MAX_CONNECTIONS_TO_SERVER if is_server(url) else MAX_CONNECTIONS
    try:
        path = file_of(url) if url and not is_postgres(url) else None
        engine = make_engine(url, lambda: path or database_file(root), tables, size, NAME)
        engine.open()
    except ModuleNotFoundError as error:
        fix = "run `pip install 'bifolio[postgres]'`"
        raise SetupError(FILE, None, f"{NAME} requires a database driver: {error}", fix) from error
    except SetupError:
        raise
    except Exception as error:
        raise SetupError(FILE, None, f"{NAME} can't be used: {reason_of(error)}") from error
    return engine


def _refuse(url: str, trouble: Trouble) -> Exception:
    """Return the exception to raise if a database statement has failed."""
    if trouble.is_duplicate:
        return DuplicateError(trouble.reason)
    if is_server(url):
        return UnavailableError()
    log.error("%s can't be used: %s", NAME, trouble.reason)
    if any(word in trouble.reason for word in ("full", "readonly", "No space")):
        return StorageError("The account can't be saved")
    return UnavailableError()


def _key(hashed: str) -> str:
    return f"token {hashed}"


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _token(row: Any) -> Token:
    name, kind, permissions, created_at, expires_at = row
    return Token(name, kind, tuple(permissions.split()), created_at, expires_at)
