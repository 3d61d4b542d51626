"""`.quire/events.db`: the events of a site in their order, and which versions they lead up to.

Both are written in one transaction, so that whoever compares the versions with the site's files knows which
changes have no events yet. A file that is damaged or removed is made anew, under another id.
"""

import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from server.errors import StorageError
from server.events.model import Event, Key
from server.paths import keep_private, state_folder

log = logging.getLogger("quire")
T = TypeVar("T")

FILE = "events.db"
BEGUN = "begun"  # the note of when the log began
DAMAGED = f"{FILE}.damaged"  # where a file is put that can't be read
WAIT_S = 10.0  # how long a transaction waits for those of other processes
PAUSE_S = 0.01
_SCHEMA = """
CREATE TABLE IF NOT EXISTS log (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, kind TEXT NOT NULL, uid TEXT NOT NULL,
    document_id TEXT NOT NULL, locale TEXT NOT NULL, status TEXT NOT NULL, changed TEXT, actor TEXT NOT NULL,
    source TEXT NOT NULL, commit_id TEXT NOT NULL, write_name TEXT NOT NULL, counts TEXT,
    hidden INTEGER NOT NULL, paths TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS events_by_write ON events (write_name) WHERE write_name != '';
CREATE TABLE IF NOT EXISTS versions (
    path TEXT PRIMARY KEY, mark BLOB NOT NULL, uid TEXT NOT NULL, document_id TEXT NOT NULL,
    locale TEXT NOT NULL, status TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS versions_by_key ON versions (document_id, uid, locale);
CREATE TABLE IF NOT EXISTS types (uid TEXT PRIMARY KEY, shape TEXT NOT NULL) WITHOUT ROWID;
"""
_COLUMNS = (
    "kind, uid, document_id, locale, status, changed, actor, source, commit_id, write_name, counts, hidden"
    ", at"
)
_NO_PATHS = "'[]'"
_FEW = 400  # of the paths and keys that one statement asks for


class Recorded(NamedTuple):
    """A version that the events lead up to: its file, a mark of what the file says, and what it is of."""

    path: str
    mark: bytes
    uid: str
    document_id: str
    locale: str
    status: str

    @property
    def key(self) -> Key:
        """What its events are about."""
        return Key(self.uid, self.document_id, self.locale)


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which log this is, the first event that it still has, and the last that it ever had; 0 for none."""

    id: str
    first: int
    last: int


class EventDatabase:
    """The database of the site at `root`, for several threads; each process opens it for itself."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._lock = threading.RLock()
        self._opened: tuple[int, tuple[int, int], sqlite3.Connection] | None = None

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self.root / ".quire" / FILE

    @contextmanager
    def writing(self, seconds: float = WAIT_S) -> Iterator["Transaction"]:
        """A transaction that is done, or not done, with the block; it waits so long for those of others.

        Raises StorageError.
        """
        with self._lock, self._storing():
            connection = self._connection()
            connection.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Transaction(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    def query(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` reads with a connection, from one state. Raises StorageError."""
        with self._lock, self._storing():
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return work(connection)
            finally:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")

    def read(self, since: int, most: int, *, with_paths: bool = False) -> list[Event]:
        """Up to so many events after one, in order; with the files that changed. Raises StorageError."""
        columns = f"{_COLUMNS}, seq, {'paths' if with_paths else _NO_PATHS}"
        statement = f"SELECT {columns} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        return self.query(lambda c: [_event(row) for row in c.execute(statement, (since, most))])

    def bounds(self) -> Bounds:
        """Which events there are. Raises StorageError."""
        return self.query(_bounds)

    def last_before(self, time: str) -> int | None:
        """The last event before all that are from a time or later; None where the log begins after it.

        Raises StorageError.
        """
        return self.query(lambda c: _last_before(c, time))

    def mark(self) -> int:
        """A number that differs whenever any other process has written. Raises StorageError."""
        with self._lock, self._storing():
            number: int = self._connection().execute("PRAGMA data_version").fetchone()[0]
            return number

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
            found = os.stat(self.path)
            if self._opened and self._opened[:2] == (os.getpid(), (found.st_dev, found.st_ino)):
                return self._opened[2]
        self.close()
        state_folder(self.root)
        self.path.touch(mode=0o600)
        keep_private(self.path)
        connection = _open(self.path)
        found = os.stat(self.path)
        self._opened = (os.getpid(), (found.st_dev, found.st_ino), connection)
        return connection

    def _replace(self) -> None:
        """Put a damaged file aside, under the name `events.db.damaged`; the next use makes another."""
        self.close()
        with suppress(OSError):
            os.replace(self.path, self.path.with_name(DAMAGED))
            for beside in ("-wal", "-shm"):
                self.path.with_name(FILE + beside).unlink(missing_ok=True)
            log.warning("%s was damaged; the log of events begins anew, and says so to its readers", FILE)


class Transaction:
    """One transaction that writes events, and the versions that they lead up to."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def value(self, name: str) -> str:
        """What is noted under a name; "" for nothing."""
        row = self.connection.execute("SELECT value FROM log WHERE name = ?", (name,)).fetchone()
        return row[0] if row else ""

    def note(self, name: str, value: str) -> None:
        """Note something under a name."""
        self.connection.execute("INSERT OR REPLACE INTO log VALUES (?, ?)", (name, value))

    def versions(self) -> Iterator[tuple[Any, ...]]:
        """All versions, as rows of what `Recorded` has."""
        return self.connection.execute("SELECT * FROM versions")

    def versions_at(self, paths: Collection[str]) -> dict[str, Recorded]:
        """The versions in some files."""
        found: dict[str, Recorded] = {}
        for part in _parts(list(paths)):
            statement = f"SELECT * FROM versions WHERE path IN ({_marks(part)})"
            found.update((row[0], Recorded(*row)) for row in self.connection.execute(statement, part))
        return found

    def versions_of(self, keys: Collection[Key]) -> list[Recorded]:
        """The versions of some documents, by path."""
        found: list[Recorded] = []
        for part in _parts(list({key.document_id for key in keys})):
            statement = f"SELECT * FROM versions WHERE document_id IN ({_marks(part)})"
            found.extend(Recorded(*row) for row in self.connection.execute(statement, part))
        return sorted(version for version in found if version.key in keys)

    def put_versions(self, versions: Iterable[Recorded], gone: Iterable[str] = ()) -> None:
        """Take versions in the place of those at their paths; at some paths are none any more."""
        self.connection.executemany("DELETE FROM versions WHERE path = ?", ((path,) for path in gone))
        self.connection.executemany("INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?, ?, ?)", versions)

    def shapes(self) -> dict[str, str]:
        """The shape of each type, by uid."""
        return dict(self.connection.execute("SELECT uid, shape FROM types").fetchall())

    def put_shapes(self, shapes: Iterable[tuple[str, str]]) -> None:
        """Take shapes in the place of all that there are."""
        self.connection.execute("DELETE FROM types")
        self.connection.executemany("INSERT INTO types VALUES (?, ?)", shapes)

    def bounds(self) -> Bounds:
        """Which events there are."""
        return _bounds(self.connection)

    def append(self, events: Iterable[Event]) -> None:
        """Append events, which get their numbers."""
        rows = ((*_row(event), event.at, json.dumps(event.paths)) for event in events)
        columns = f"{_COLUMNS}, paths"
        marks = _marks(columns.split(","))
        self.connection.executemany(f"INSERT INTO events ({columns}) VALUES ({marks})", rows)

    def committed(self, write: str, commit: str) -> None:
        """Name the commit of the events of a write."""
        statement = "UPDATE events SET commit_id = ? WHERE write_name = ? AND write_name != ''"
        self.connection.execute(statement, (commit, write))

    def forget(self, before: str, most: int | None) -> None:
        """Remove events that are older than a timestamp, "" for none, or more than so many."""
        last = _bounds(self.connection).last
        if before:
            self.connection.execute("DELETE FROM events WHERE at < ? AND seq < ?", (before, last))
        if most is not None:
            self.connection.execute("DELETE FROM events WHERE seq <= ?", (last - most,))


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=WAIT_S, isolation_level=None, check_same_thread=False)
    try:
        connection.execute("PRAGMA synchronous=FULL")
        if connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'types'").fetchone()[0] == 0:
            _make(connection, path.with_name(DAMAGED).exists())
    except BaseException:
        connection.close()
        raise
    return connection


def _make(connection: sqlite3.Connection, again: bool) -> None:
    """Make the tables. After a log that was damaged, numbers begin where it can't have come to."""
    deadline = time.monotonic() + WAIT_S
    while True:  # SQLite waits for no other process here.
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            break
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(PAUSE_S)
    connection.execute("BEGIN IMMEDIATE")
    for statement in _SCHEMA.split(";\n"):
        connection.execute(statement)
    if connection.execute("SELECT count(*) FROM log").fetchone()[0] == 0:
        connection.execute("INSERT INTO log VALUES ('id', ?)", (secrets.token_hex(4),))
        if again:
            connection.execute("INSERT INTO sqlite_sequence VALUES ('events', ?)", (time.time_ns() // 10**6,))
    connection.execute("COMMIT")


def _bounds(connection: sqlite3.Connection) -> Bounds:
    identity = connection.execute("SELECT value FROM log WHERE name = 'id'").fetchone()[0]
    first = connection.execute("SELECT min(seq) FROM events").fetchone()[0] or 0
    last = connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'events'").fetchone()
    return Bounds(identity, first, last[0] if last else 0)


def _last_before(connection: sqlite3.Connection, time: str) -> int | None:
    begun = connection.execute("SELECT value FROM log WHERE name = ?", (BEGUN,)).fetchone()
    found = connection.execute("SELECT min(seq) FROM events WHERE at >= ?", (time,)).fetchone()[0]
    bounds = _bounds(connection)
    last: int = found - 1 if found else bounds.last
    forgotten = bounds.last > 0 and last < (bounds.first or bounds.last + 1) and bounds.first != 1
    return None if begun is None or begun[0] > time or forgotten else last


def _is_damaged(error: sqlite3.DatabaseError) -> bool:
    name = getattr(error, "sqlite_errorname", "")
    return name.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")) or "no such table" in str(error)


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[at : at + _FEW] for at in range(0, len(values), _FEW))


def _marks(values: Collection[Any]) -> str:
    return ",".join("?" * len(values))


def _row(event: Event) -> tuple[Any, ...]:
    changed = None if event.changed is None else json.dumps(event.changed)
    counts = None if event.counts is None else json.dumps(event.counts)
    at = (event.kind, event.uid, event.document_id, event.locale, event.status, changed)
    return (*at, event.actor, event.source, event.commit, event.write, counts, event.hidden)


def _event(row: tuple[Any, ...]) -> Event:
    kind, uid, document_id, locale, status, changed, *origin, counts, hidden, at, seq, paths = row
    names = None if changed is None else tuple(json.loads(changed))
    told = None if counts is None else json.loads(counts)
    about = Event(kind, uid, document_id, locale, status, names, *origin)
    found = tuple(json.loads(paths))
    return replace(about, counts=told, hidden=bool(hidden), paths=found, at=at, seq=seq)
