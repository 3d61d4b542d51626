"""A site's accounts database, and the API tokens in it."""

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
from server.auth.last_uses import LastUses, token_key
from server.auth.permissions import TOKEN_PREFIX, Actor
from server.auth.tables import SCHEMA, migrate_tables
from server.config.model import FILE
from server.database.address import is_postgres, is_server, sqlite_path
from server.database.engine import Connection, DatabaseFailure, DuplicateError, Engine, Tables
from server.database.file import database_file
from server.database.notices import ACCOUNTS, notify
from server.database.opening import make_engine
from server.database.outage import reason_of
from server.database.sqlite import ChangeDetector, Sqlite
from server.documents.timestamps import from_datetime, now
from server.errors import SetupError, StorageError, UnavailableError

log = logging.getLogger("bifolio")

KINDS = ("full-access", "read-only", "custom")
NAME = "the accounts database"
_COLUMNS = "name, kind, permissions, created_at, expires_at, branch_only, maker"
# Maximum number of connections in each process. It is lower for a database server, because PostgreSQL limits
# the total number of connections from all workers and machines.
MAX_CONNECTIONS, MAX_CONNECTIONS_TO_SERVER = 64, 15


@dataclass(frozen=True, slots=True)
class Token:
    """An API token, without its secret string.

    - `branch_only`: whether the token can write only to branches that are not served.
    - `maker`: the actor who created the token, such as `user:3`, or None if it was created on the command
      line.
    """

    name: str
    kind: str
    permissions: tuple[str, ...]
    created_at: str
    expires_at: str | None
    branch_only: bool = False
    maker: str | None = None

    @property
    def maker_id(self) -> int | None:
        kind, _, key = (self.maker or "").partition(":")
        return int(key) if kind == "user" else None

    @property
    def expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= now()

    def actor(self) -> Actor:
        return Actor(
            f"token:{self.name}",
            frozenset(self.permissions),
            everything=self.kind == "full-access",
            reading=self.kind == "read-only",
            branch_only=self.branch_only,
        )


class Accounts:
    """A site's accounts database. Thread-safe and fork-safe."""

    def __init__(self, root: Path, url: str = "") -> None:
        self.root, self.url = root, url
        self.engine = _open_engine(root, url)
        self._watch = ChangeDetector(self.engine) if isinstance(self.engine, Sqlite) else None
        self.known = CredentialCache(self._watch)
        self.last_uses = LastUses(self.engine)

    @property
    def is_read_only(self) -> bool:
        return self.engine.is_read_only

    @property
    def is_current(self) -> bool:
        # False if the file was removed or replaced.
        return self.engine.is_current()

    @cached_property
    def site_id(self) -> str:
        with self.engine.reading() as connection:
            return str(connection.execute("SELECT id FROM site").fetchone()[0])

    def create_token(
        self,
        name: str,
        kind: str,
        permissions: Iterable[str] = (),
        expires: timedelta | None = None,
        *,
        branch_only: bool = False,
        maker: str | None = None,
        ends_by: str | None = None,
    ) -> str:
        """Create a token, and return its secret string.

        The token expires after `expires`, but not later than `ends_by` (a timestamp). Raises SetupError if
        there is already a token with the same name, ignoring case.
        """
        # The string can't be read again, because the database stores only its SHA-256 hash.
        token = TOKEN_PREFIX + secrets.token_hex(32)
        ends = from_datetime(datetime.now(UTC) + expires) if expires else None
        ends = min(filter(None, (ends, ends_by)), default=None)
        allowed = " ".join(sorted(set(permissions)))
        row = (_hash(token), name, kind, allowed, now(), ends, branch_only, maker)
        marks = ", ".join("?" * len(row))
        try:
            with self.engine.writing() as connection:
                found = connection.execute("SELECT name FROM tokens WHERE lower(name) = ?", (name.lower(),))
                if found.fetchone():
                    raise DuplicateError(name)
                connection.execute(f"INSERT INTO tokens (hash, {_COLUMNS}) VALUES ({marks})", row)
        except DuplicateError as error:
            fix = f"run `bifolio token revoke {name}`, or choose another name"
            raise SetupError("token", None, f'a token named "{name}" already exists', fix) from error
        return token

    def tokens(self) -> list[Token]:
        with self.engine.reading() as connection:
            return [_token(row) for row in connection.execute(f"SELECT {_COLUMNS} FROM tokens ORDER BY name")]

    def revoke_token(self, name: str) -> bool:
        # With PostgreSQL, other workers can still accept the token until their caches expire (CACHE_TTL_S).
        with self.write_transaction() as (connection, changed):
            deleted = connection.execute("DELETE FROM tokens WHERE name = ? RETURNING hash", (name,))
            changed.extend(_key(hashed) for (hashed,) in deleted)
        if changed:
            self.last_uses.forget(token_key(name))
        return bool(changed)

    def find_token(self, text: str, *, waits: bool = True) -> Token | None:
        """Return the token with this secret string, or None if it is unknown or has expired.

        Raises the same errors as `CredentialCache.get`.
        """
        token = self.known.get(_key(_hash(text)), self._read, waits=waits)
        return token if token and not token.expired else None

    @contextmanager
    def write_transaction(self) -> Iterator[tuple[Connection, list[str]]]:
        """Context manager for a write transaction. Yields a connection and an empty list.

        Append the cache key of each changed account to the list, to remove the account from the cache.
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
        self.last_uses.close()
        if self._watch is not None:
            self._watch.close()
        self.engine.close()

    def _read(self, key: str) -> Token | None:
        key = key.partition(" ")[2]
        with self.engine.reading() as connection:
            row = connection.execute(f"SELECT hash, {_COLUMNS} FROM tokens WHERE hash = ?", (key,)).fetchone()
        return _token(row[1:]) if row is not None and hmac.compare_digest(row[0], key) else None


def _open_engine(root: Path, url: str) -> Engine:
    tables = Tables(SCHEMA, migrate_tables, partial(_exception_for, url))
    size = MAX_CONNECTIONS_TO_SERVER if is_server(url) else MAX_CONNECTIONS
    try:
        path = sqlite_path(url) if url and not is_postgres(url) else None
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


def _exception_for(url: str, trouble: DatabaseFailure) -> Exception:
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
    name, kind, permissions, created_at, expires_at, branch_only, maker = row
    return Token(name, kind, tuple(permissions.split()), created_at, expires_at, bool(branch_only), maker)
