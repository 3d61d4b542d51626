"""Opens the accounts database, in SQLite or wherever `accounts:` points, and makes what is missing of it."""

import logging
import secrets
import sqlite3
import threading
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, select, text
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import DatabaseError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool, Pool
from sqlalchemy.schema import CreateColumn, CreateIndex, CreateTable

from server.auth.database.connections import Connections
from server.auth.database.tables import LATER, indexes, metadata, site_table, users_table, versions_table
from server.auth.user import name_key
from server.database.address import is_postgres, is_server
from server.database.file import database_file
from server.database.outage import reason_of
from server.errors import ApiError, SetupError, StorageError, UnavailableError

log = logging.getLogger("quire")

TRIES = 3
READ_ONLY = "25006"  # what PostgreSQL calls a transaction that must not write
WAIT_S = 3  # how long a request waits for a connection to a database elsewhere


class Watch:
    """Tells whether anyone wrote to a database since it was last asked.

    With SQLite that takes microseconds. Other databases don't say: there, somebody may have.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.tells = engine.dialect.name == "sqlite"
        self._lock = threading.Lock()
        self._connection: Any = None
        self._seen = -1

    def changed(self) -> bool:
        """Whether the database may have changed since the last call, or since ever."""
        if not self.tells:
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
        if not is_server(url):
            arguments = {"check_same_thread": False, "timeout": 10}
            engine = create_engine(url, connect_args=arguments, poolclass=NullPool)
            event.listen(engine, "connect", _use_write_ahead_log)
        else:
            engine = _elsewhere(url.replace("postgresql://", "postgresql+psycopg://"))
            engine.connect().close()  # once: to make the tables is tried again
        _make_tables(engine)
        event.listen(engine, "handle_error", partial(_refuse, engine.pool))
        if isinstance(engine.pool, Connections):
            engine.pool.is_opened = True
    except ModuleNotFoundError as error:
        fix = "pip install 'quire[postgres]'"
        raise SetupError("site.yaml", None, f"the accounts database has no driver: {error}", fix) from error
    except Exception as error:
        message = str(error).splitlines()[0]
        raise SetupError("site.yaml", None, f"the accounts database can't be used: {message}") from error
    return engine


def _elsewhere(url: str) -> Engine:
    """A database that other machines can use as well, and that may not answer."""
    bounded = {"pool_pre_ping": True, "pool_timeout": WAIT_S, "poolclass": Connections}
    if not is_postgres(url):
        return create_engine(url, **bounded)
    module: Any = import_module("server.database.postgres")  # docs/packages.py, LAZY
    engine = create_engine(url, **bounded, connect_args=module.OPTIONS)
    event.listen(engine, "do_connect", module.connect)
    if isinstance(engine.pool, Connections):
        engine.pool.require_writable = module.require_writable
    return engine


def _refuse(pool: Pool, context: ExceptionContext) -> ApiError | None:
    """What a request is answered that meets a database which can't be used; None for any other error."""
    error, original = context.sqlalchemy_exception, context.original_exception
    if isinstance(pool, Connections):
        if getattr(original, "sqlstate", "") == READ_ONLY:
            context.is_disconnect = True  # Another server may have taken its place at this address.
            pool.outage.begin(reason_of(original), read_only=True)
            return UnavailableError()
        if isinstance(original, TimeoutError):
            pool.outage.begin(reason_of(original))
        elif context.is_disconnect:  # It may have been started again; to connect anew tells.
            return None if context.is_pre_ping else UnavailableError()
        return UnavailableError() if isinstance(error, OperationalError) else None
    if not isinstance(error, OperationalError) and type(error) is not DatabaseError:
        return None
    message = reason_of(original)
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
                for table in metadata.sorted_tables:
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
    for name in LATER:
        if name not in there:
            column = CreateColumn(users_table.c[name]).compile(dialect=connection.dialect)
            connection.execute(text(f"ALTER TABLE users ADD COLUMN {column}"))
    if connection.execute(select(versions_table.c.name)).first() is None:
        connection.execute(versions_table.insert(), {"name": users_table.name, "number": 1})
    if connection.execute(select(site_table.c.id)).first() is None:
        connection.execute(site_table.insert(), {"row": 1, "id": secrets.token_hex(16)})
    _fill_keys(connection)
    for index in indexes:
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
