"""Database engine for SQLite files."""

import os
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from server.database.engine import LOCK_TIMEOUT_S, Connection, DatabaseFailure, Tables
from server.database.file import OpenedFile
from server.database.pool import NoConnectionLeftError, Pool

POLL_INTERVAL_S = 0.01
DAMAGED_SUFFIX = ".damaged"  # added to the name of a damaged file
# Errors after which the file can't be written, but can perhaps still be read.
_UNWRITABLE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_READONLY")
# If the index of the write-ahead log (-shm) is smaller, it was truncated because the disk is full.
_MIN_INDEX_BYTES = 32_768
# Errors caused by tables of a different version of Bifolio.
_OTHER_TABLES = re.compile("no such (table|column)|has no column")


class Sqlite:
    """Database engine for an SQLite file.

    If `on_replaced` is given, a damaged or deleted file is replaced with an empty one.
    """

    # Without `on_replaced`, the engine keeps using the file that it opened first.

    is_read_only = False  # If the file can't be written, each write raises an error instead.

    def __init__(
        self,
        prepare: Callable[[], Path],
        tables: Tables,
        pool_size: int,
        on_replaced: Callable[[], None] | None = None,
    ) -> None:
        self._prepare, self._tables, self._on_replaced = prepare, tables, on_replaced
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._file: OpenedFile | None = None
        self._pool = Pool(pool_size, lambda _: self._connect(), lambda *_: True, _is_idle)

    def open(self) -> None:
        self._renew()
        with self._pool.lend(LOCK_TIMEOUT_S):
            pass

    def is_current(self) -> bool:
        file = self._file
        return file is None or file.is_current()

    @contextmanager
    def writing(self, timeout_s: float = LOCK_TIMEOUT_S, lock_statement: str = "") -> Iterator[Connection]:
        with self._using() as connection:
            if isinstance(connection, _ReadOnlyConnection):
                raise self._tables.to_error(DatabaseFailure(f"readonly for now: {connection.reason}"))
            connection.execute(f"PRAGMA busy_timeout = {timeout_s * 1000:.0f}")
            with _between(connection, "BEGIN IMMEDIATE", "COMMIT"):
                yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._using() as connection, _between(connection, "BEGIN", "ROLLBACK"):
            yield connection

    def connect(self) -> sqlite3.Connection:
        """Return a new connection, which the caller must close. Raises OSError or sqlite3.Error."""
        path = self._prepare()
        connection = sqlite3.connect(
            path, timeout=LOCK_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        try:
            _write_ahead(connection)
            self._create_tables(connection)
            with self._lock:
                self._file = self._file or OpenedFile(path)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self) -> sqlite3.Connection:
        # If the file can't be written, for example because the disk is full, it can still be read.
        try:
            return self.connect()
        except sqlite3.OperationalError as error:
            if not getattr(error, "sqlite_errorname", "").startswith(_UNWRITABLE):
                raise
            path = self._prepare()
            if not path.exists():
                raise
            return _open_read_only(path, str(error))

    def close(self) -> None:
        with self._lock:
            self._release()

    @contextmanager
    def _using(self) -> Iterator[sqlite3.Connection]:
        try:
            self._renew()
            with self._pool.lend(LOCK_TIMEOUT_S) as connection:
                yield connection
        except sqlite3.DatabaseError as error:
            if self._on_replaced and _is_damaged(error):
                self._set_damaged_file_aside()
            duplicate = isinstance(error, sqlite3.IntegrityError)
            raise self._tables.to_error(DatabaseFailure(str(error), is_duplicate=duplicate)) from error
        except NoConnectionLeftError as error:
            raise self._tables.to_error(DatabaseFailure(str(error))) from error
        except OSError as error:
            raise self._tables.to_error(DatabaseFailure(error.strerror or str(error))) from error

    def _renew(self) -> None:
        # Close connections if the file was deleted, or abandon them if they belong to the parent process.
        if self._process != os.getpid() or (self._on_replaced and not self.is_current()):
            with self._lock:
                self._release()

    def _release(self) -> None:
        if self._process == os.getpid():
            self._pool.clear()
        else:
            self._pool.forget()
            self._process = os.getpid()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _set_damaged_file_aside(self) -> None:
        # Rename the damaged file. The next call creates a new file.
        self.close()
        with suppress(OSError):
            path = self._prepare()
            os.replace(path, path.with_name(path.name + DAMAGED_SUFFIX))
            for suffix in ("-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
            if self._on_replaced:
                self._on_replaced()

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        names = self._tables.names
        query = f"SELECT count(*) FROM sqlite_master WHERE name IN ({','.join('?' * len(names))})"
        if connection.execute(query, names).fetchone()[0] < len(names):
            with _between(connection, "BEGIN IMMEDIATE", "COMMIT"):
                self._tables.create(connection)


class _ReadOnlyConnection(sqlite3.Connection):
    """Connection to a file that can't be written. It is used only once."""

    reason = ""


def _is_idle(connection: sqlite3.Connection) -> bool:
    return not connection.in_transaction and not isinstance(connection, _ReadOnlyConnection)


def _open_read_only(path: Path, reason: str) -> _ReadOnlyConnection:
    # The disk may be full, so the -wal and -shm files are not created. A log without an index is read under
    # an exclusive lock. If there is no log, the database file is complete.
    log, index = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm"))
    has_log, has_index = _size_of(log) > 0, _size_of(index) >= _MIN_INDEX_BYTES
    mode = "immutable=1" if not has_log else "mode=ro" if has_index else "mode=rw"
    uri = f"file:{quote(str(path))}?{mode}"
    connection = sqlite3.connect(
        uri,
        uri=True,
        timeout=LOCK_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        factory=_ReadOnlyConnection,
    )
    connection.reason = reason
    if has_log and not has_index:
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")
    return connection


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _write_ahead(connection: sqlite3.Connection) -> None:
    # Each commit is written to disk.
    connection.execute("PRAGMA synchronous=FULL")
    deadline = time.monotonic() + LOCK_TIMEOUT_S
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:  # SQLite's timeout does not apply to this statement.
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(POLL_INTERVAL_S)


@contextmanager
def _between(connection: sqlite3.Connection, begin: str, end: str) -> Iterator[None]:
    connection.execute(begin)
    try:
        yield
        connection.execute(end)
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


def _is_damaged(error: sqlite3.DatabaseError) -> bool:
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or bool(_OTHER_TABLES.search(str(error)))


class ChangeDetector:
    """Detector of writes that other connections make to a database file."""

    def __init__(self, engine: Sqlite) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._seen = -1

    def has_changed(self) -> bool:
        """Return True if the file might have changed since the last call, or if this is the first call."""
        with self._lock:
            try:
                self._connection = self._connection or self._engine.connect()
                version = self._connection.execute("PRAGMA data_version").fetchone()[0]
            except (sqlite3.Error, OSError):
                # The caller's next query raises the same error.
                self._connection = None
                return True
            changed, self._seen = version != self._seen, version
        return bool(changed)

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None
