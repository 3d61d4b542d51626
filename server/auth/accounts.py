"""The accounts database: API tokens (and users), in SQLite or wherever `accounts:` points.

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
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
)
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateTable

from server.auth.permissions import Actor
from server.documents.timestamps import from_datetime, now
from server.errors import SetupError
from server.paths import state_folder

KINDS = ("full-access", "read-only", "custom")
PREFIX = "quire_"
TRIES = 3

_metadata = MetaData()
_tokens = Table(
    "tokens",
    _metadata,
    Column("hash", String(64), primary_key=True),
    Column("name", String(200), nullable=False, unique=True),
    Column("kind", String(20), nullable=False),
    Column("permissions", Text, nullable=False, default=""),
    Column("created_at", String(24), nullable=False),
    Column("expires_at", String(24)),
)

users_table = Table(
    "users",
    _metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("document_id", String(24), nullable=False, unique=True),
    Column("username", String(200), nullable=False, unique=True),
    Column("email", String(320), nullable=False, unique=True),
    Column("password", String(200)),
    Column("provider", String(40), nullable=False, default="local"),
    Column("confirmed", Boolean, nullable=False, default=True),
    Column("blocked", Boolean, nullable=False, default=False),
    Column("role", String(100), nullable=False, default="authenticated"),
    Column("sessions", Integer, nullable=False, default=0),
    Column("reset_hash", String(64)),
    Column("confirm_hash", String(64)),
    Column("created_at", String(24), nullable=False),
    Column("updated_at", String(24), nullable=False),
    sqlite_autoincrement=True,
)


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
        self._sqlite = not url or url.startswith("sqlite")
        self.root = root
        if not url:
            url = f"sqlite:///{_database(root)}"
        self._engine = self.engine = _engine(url)
        self._watch: Any = None
        self._seen = -1
        self._known: dict[str, Token | None] = {}
        self._lock = threading.Lock()

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
            with self._engine.begin() as connection:
                connection.execute(_tokens.insert(), row)
        except IntegrityError as error:
            fix = f"quire token revoke {name}, or choose another name"
            raise SetupError("token", None, f'there is a token named "{name}"', fix) from error
        return token

    def tokens(self) -> list[Token]:
        """All tokens, by name."""
        with self._engine.connect() as connection:
            rows = connection.execute(_tokens.select().order_by(_tokens.c.name)).all()
        return [_token(row) for row in rows]

    def revoke_token(self, name: str) -> bool:
        """Delete a token; False where there is none of that name."""
        with self._engine.begin() as connection:
            return connection.execute(_tokens.delete().where(_tokens.c.name == name)).rowcount > 0

    def find_token(self, text: str) -> Token | None:
        """The token that a request carries, if it is known and not expired."""
        key = _hash(text)
        with self._lock:
            if not self._sqlite or self._changed():
                self._known.clear()
            token = self._known.get(key, _UNKNOWN)
            if token is _UNKNOWN:
                token = self._read(key)
                if len(self._known) < 10_000:
                    self._known[key] = token
        return token if token and not token.expired else None

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            if self._watch is not None:
                self._watch.close()
                self._watch = None
        self._engine.dispose()

    def _read(self, key: str) -> Token | None:
        with self._engine.connect() as connection:
            row = connection.execute(_tokens.select().where(_tokens.c.hash == key)).first()
        return _token(row) if row is not None and hmac.compare_digest(row.hash, key) else None

    def _changed(self) -> bool:
        """Whether anyone wrote to the SQLite database since the last look: microseconds to ask."""
        if self._watch is None:
            self._watch = self._engine.raw_connection()
        cursor = self._watch.cursor()
        version = cursor.execute("PRAGMA data_version").fetchone()[0]
        cursor.close()
        changed, self._seen = version != self._seen, version
        return bool(changed)


_UNKNOWN: Any = object()


def _database(root: Path) -> Path:
    try:
        path = state_folder(root) / "accounts.db"
        path.touch(mode=0o600)
    except OSError as error:
        raise SetupError(
            ".quire", None, f"can't be written: {error.strerror}", "look at its permissions"
        ) from error
    return path


def _engine(url: str) -> Engine:
    try:
        if url.startswith("sqlite"):
            arguments = {"check_same_thread": False, "timeout": 10}
            engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
            event.listen(engine, "connect", _use_write_ahead_log)
        else:
            engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"), pool_pre_ping=True)
        _make_tables(engine)
    except ModuleNotFoundError as error:
        fix = "pip install 'quire[postgres]'"
        raise SetupError("site.yaml", None, f"the accounts database has no driver: {error}", fix) from error
    except Exception as error:
        message = str(error).splitlines()[0]
        raise SetupError("site.yaml", None, f"the accounts database can't be used: {message}") from error
    return engine


def _make_tables(engine: Engine) -> None:
    """Make the tables that are missing; other processes may be doing so at the same moment."""
    for left in reversed(range(TRIES)):
        try:
            with engine.begin() as connection:
                for table in _metadata.sorted_tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
        except (OperationalError, ProgrammingError, IntegrityError):
            if not left:
                raise
        else:
            return


def _use_write_ahead_log(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def _token(row: Any) -> Token:
    return Token(row.name, row.kind, tuple(row.permissions.split()), row.created_at, row.expires_at)
