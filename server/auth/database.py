"""The accounts database: its tables and how it is opened, in SQLite or wherever `accounts:` points."""

import logging
import secrets
import sqlite3
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    create_engine,
    event,
    inspect,
    select,
    text,
)
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from server.auth.database_file import database_file, is_server
from server.auth.user import name_key
from server.errors import ApiError, SetupError, StorageError, UnavailableError

log = logging.getLogger("quire")

TRIES = 3
CONNECT_S = 3  # how long a database elsewhere may take to accept a connection
UNANSWERED_MS = 5000  # how long what was sent to it may stay unacknowledged

_metadata = MetaData()
tokens_table = Table(
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
    # The columns below came later: `_complete` adds them to a database that was made without them.
    Column("name_key", String(200)),
    Column("version", Integer, nullable=False, server_default="0"),
    sqlite_autoincrement=True,
)
_LATER = ("name_key", "version")
_indexes = (
    Index("users_name_key", users_table.c.name_key, unique=True),
    Index("users_version", users_table.c.version),
)

# The logins that can be renewed, where `auth.refresh` is set: one row each, deleted when it ends.
logins_table = Table(
    "logins",
    _metadata,
    Column("id", String(32), primary_key=True),
    Column("user_id", Integer, nullable=False, index=True),
    Column("sessions", Integer, nullable=False),  # that of the user: a changed password ends the login
    Column("turn", Integer, nullable=False),  # how often it was renewed
    Column("device_id", String(200)),
    Column("device_name", String(200)),
    Column("began_at", String(24), nullable=False),
    Column("renewed_at", String(24), nullable=False),
    Column("expires_at", String(24), nullable=False),
    Column("ends_at", String(24), nullable=False),
)

# What was tried too often, or from where an account was logged in to: times in seconds since 1970.
attempts_table = Table(
    "attempts",
    _metadata,
    Column("key", String(64), primary_key=True),
    Column("until", Float, nullable=False, index=True),
    Column("known_until", Float, nullable=False),
)

# What tells this database from all others, in one row: tokens of users are good for its users alone.
site_table = Table(
    "site",
    _metadata,
    Column("row", Integer, primary_key=True),
    Column("id", String(32), nullable=False),
)

# How often the rows of a table were changed; whoever changes one counts first, and so is alone.
versions_table = Table(
    "versions",
    _metadata,
    Column("name", String(40), primary_key=True),
    Column("number", Integer, nullable=False),
)


class Watch:
    """Tells whether anyone wrote to a database since it was last asked.

    With SQLite that takes microseconds. Other databases don't say: there, somebody may have.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._connection: Any = None
        self._seen = -1

    def changed(self) -> bool:
        """Whether the database may have changed since the last call, or since ever."""
        if self._engine.dialect.name != "sqlite":
            return True
        with self._lock:
            try:
                if self._connection is None:
                    self._connection = self._engine.raw_connection()
                cursor = self._connection.cursor()
                version = cursor.execute("PRAGMA data_version").fetchone()[0]
                cursor.close()
            except (sqlite3.Error, DatabaseError):
                # The query that follows a change meets the same error, and raises it.
                self._connection = None
                return True
            changed, self._seen = version != self._seen, version
        return bool(changed)

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def open_database(root: Path, url: str = "") -> Engine:
    """The database of a site, whose tables are made where they are missing. Raises SetupError."""
    url = url or f"sqlite:///{database_file(root)}"
    try:
        arguments: dict[str, Any]
        if not is_server(url):
            arguments = {"check_same_thread": False, "timeout": 10}
            engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
            event.listen(engine, "connect", _use_write_ahead_log)
        else:
            url = url.replace("postgresql://", "postgresql+psycopg://")
            timeouts = {"connect_timeout": CONNECT_S, "tcp_user_timeout": UNANSWERED_MS}
            arguments = timeouts if url.startswith("postgresql") else {}
            engine = create_engine(url, pool_pre_ping=True, pool_timeout=CONNECT_S, connect_args=arguments)
            engine.connect().close()  # once: to make the tables is tried again
        _make_tables(engine)
        event.listen(engine, "handle_error", _refuse)
    except ModuleNotFoundError as error:
        fix = "pip install 'quire[postgres]'"
        raise SetupError("site.yaml", None, f"the accounts database has no driver: {error}", fix) from error
    except Exception as error:
        message = str(error).splitlines()[0]
        raise SetupError("site.yaml", None, f"the accounts database can't be used: {message}") from error
    return engine


def _refuse(context: ExceptionContext) -> ApiError | None:
    """What a request is answered that meets a database which can't be used; None for any other error."""
    error = context.sqlalchemy_exception
    if not isinstance(error, OperationalError) and type(error) is not DatabaseError:
        return None
    message = str(context.original_exception).splitlines()[0]
    log.error("the accounts database can't be used: %s", message)
    if any(word in message for word in ("full", "readonly", "No space")):
        return StorageError("The account could not be written")
    return UnavailableError()


def _use_write_ahead_log(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")


def _make_tables(engine: Engine) -> None:
    """Make what is missing of the tables; other processes may be doing so at the same time."""
    for left in reversed(range(TRIES)):
        try:
            with engine.begin() as connection:
                for table in _metadata.sorted_tables:
                    connection.execute(CreateTable(table, if_not_exists=True))
                _complete(connection)
        except (OperationalError, ProgrammingError, IntegrityError):
            if not left:
                raise
        else:
            return


def _complete(connection: Connection) -> None:
    """Bring the tables of an older release up to date."""
    there = {column["name"] for column in inspect(connection).get_columns(users_table.name)}
    for name in _LATER:
        if name not in there:
            column = CreateColumn(users_table.c[name]).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE users ADD COLUMN {column}"))
    if connection.execute(select(versions_table.c.name)).first() is None:
        connection.execute(versions_table.insert(), {"name": users_table.name, "number": 1})
    if connection.execute(select(site_table.c.id)).first() is None:
        connection.execute(site_table.insert(), {"row": 1, "id": secrets.token_hex(16)})
    _fill_keys(connection)
    for index in _indexes:
        connection.execute(CreateIndex(index, if_not_exists=True))


def _fill_keys(connection: Connection) -> None:
    """Give a key to the names that have none; where two are the same, to the older one alone."""
    rows = select(users_table.c.id, users_table.c.username).where(users_table.c.name_key.is_(None))
    for row in connection.execute(rows.order_by(users_table.c.id)).all():
        key = name_key(row.username)[:200]
        taken = select(users_table.c.id).where(users_table.c.name_key == key)
        if connection.execute(taken).first() is None:
            update = users_table.update().where(users_table.c.id == row.id)
            connection.execute(update.values(name_key=key))
