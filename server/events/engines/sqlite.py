"""`.quire/events.db`. A file that is damaged or removed is made anew, as a log with another id."""

import logging
import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server.errors import StorageError
from server.events.engines.engine import Connection
from server.events.engines.tables import LAST_TABLE, begin_log, statements
from server.paths import keep_private, state_folder

log = logging.getLogger("quire")

FILE = "events.db"
DAMAGED = f"{FILE}.damaged"  # where a file is put that can't be read
PAUSE_S = 0.01
MAKE_S = 10.0  # how long another process may take to make the file
_OTHER_TABLES = re.compile("no such (table|column)|has no column")  # as those of another release


class Sqlite:
    """The file of the site at `root` (`server.events.engines.engine`)."""

    clone = ""  # No other clone has the file.

    def __init__(self, root: Path) -> None:
        self._root, self._path = root, root / ".quire" / FILE
        self._lock = threading.RLock()
        self._opened: tuple[int, tuple[int, int], sqlite3.Connection] | None = None

    @contextmanager
    def writing(self, seconds: float) -> Iterator[Connection]:
        """A transaction that writes."""
        with self._lock, self._storing():
            connection = self._connection()
            connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that reads."""
        with self._lock, self._storing():
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def mark(self) -> int:
        """A number that differs whenever any other process has written."""
        with self._lock, self._storing():
            number: int = self._connection().execute("PRAGMA data_version").fetchone()[0]
            return number

    def leads(self) -> bool:
        """There is no other machine."""
        return True

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            if self._opened and self._opened[0] == os.getpid():
                self._opened[2].close()
            self._opened = None

    @contextmanager
    def _storing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.DatabaseError as error:
            if _is_damaged(error):
                self._replace()
            raise StorageError(f"The log of events can't be used: {error}") from error
        except OSError as error:
            raise StorageError(f"The log of events can't be used: {error.strerror}") from error

    def _connection(self) -> sqlite3.Connection:
        """The connection of this process, made anew where another file is in the place of the one before."""
        with suppress(FileNotFoundError):
            found = os.stat(self._path)
            if self._opened and self._opened[:2] == (os.getpid(), (found.st_dev, found.st_ino)):
                return self._opened[2]
        self.close()
        state_folder(self._root)
        self._path.touch(mode=0o600)
        keep_private(self._path)
        connection = _open(self._path)
        found = os.stat(self._path)
        self._opened = (os.getpid(), (found.st_dev, found.st_ino), connection)
        return connection

    def _replace(self) -> None:
        """Put a damaged file aside, under the name `events.db.damaged`; the next use makes another."""
        self.close()
        with suppress(OSError):
            os.replace(self._path, self._path.with_name(DAMAGED))
            for beside in ("-wal", "-shm"):
                self._path.with_name(FILE + beside).unlink(missing_ok=True)
            log.warning("%s was damaged; the log of events begins anew, and says so to its readers", FILE)


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=MAKE_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous=FULL")
        there = "SELECT count(*) FROM sqlite_master WHERE name = ?"
        if connection.execute(there, (LAST_TABLE,)).fetchone()[0] == 0:
            _make(connection, path.with_name(DAMAGED).exists())
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection, again: bool) -> None:
    """Make the tables. After a log that was damaged, numbers begin where it can't have come to."""
    deadline = time.monotonic() + MAKE_S
    while True:  # SQLite waits for no other process here.
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements():
        connection.execute(statement)
    begin_log(connection, secrets.token_hex(4), time.time_ns() // 10**6 if again else 0)
    connection.execute("COMMIT")


def _is_damaged(error: sqlite3.DatabaseError) -> bool:
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or bool(_OTHER_TABLES.search(str(error)))
