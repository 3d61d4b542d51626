"""The log of events: the events of a site in their order, and which versions they lead up to.

Both are written in one transaction, so that whoever compares the versions with the site's files knows which
changes have no events yet. It is in `.bifolio/events.db`, or in PostgreSQL where the accounts are there, in
tables whose names begin with `event_`. A file that is damaged or removed is made anew, as a log with another
id.
"""

import json
import logging
import secrets
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from time import monotonic, time_ns
from typing import Any, NamedTuple, TypeVar

from server.database.address import is_postgres
from server.database.engine import LOCK_TIMEOUT_S, Connection, Engine, Tables, Trouble
from server.database.file import private_file
from server.database.notices import EVENTS, notify
from server.database.opening import make_engine
from server.database.sqlite import DAMAGED_SUFFIX
from server.errors import LogUnavailableError, StorageError
from server.events.model import Event, Key
from server.events.tables import SCHEMA
from server.paths import state_folder
from server.storage.durable import make_once

log = logging.getLogger("bifolio")

T = TypeVar("T")

ALL_CLONES = "*"
MAX_COMMITS = 10_000  # Commits that are kept as recorded.
BEGIN_NOTE = "begun"  # The note of when versions were first recorded.
LOG_FILE, CLONE_ID_FILE = "events.db", "clone-id"  # In `.bifolio/`.
ELECTION_INTERVAL_S = 2.0  # Between two attempts to become the process that delivers webhooks.
_ELECTION_LOCK = 0x71756972650002  # Nobody else locks by this number.
_CLAIM = "UPDATE log SET changes = changes + 1"
_COLUMNS = (
    "kind, uid, document_id, locale, status, changed, actor, source, commit_id, write_name, counts, hidden"
    ", at"
)
_VERSION = "path, mark, uid, document_id, locale, status"
_NO_PATHS = ", '[]'"
_MAX_PARAMETERS = 400  # Paths or keys of one statement.


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


class Told(NamedTuple):
    """By what the last event of a file came: a commit, "" for what is in none yet, and whose it is."""

    clone: str
    commit: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """Which log this is, the first event that it still has, and the last that it ever had; 0 for none."""

    id: str
    first: int
    last: int


class EventDatabase:
    """The log of the site at `root`, for several threads; each process opens it for itself.

    `accounts` is where the accounts are, as settings say it.
    """

    def __init__(self, root: Path, accounts: str = "") -> None:
        self.root, self.accounts = root, accounts
        self._is_shared = is_postgres(accounts)
        self._own = 0  # how often this has written
        self._lead_at = 0.0

    @property
    def path(self) -> Path:
        """Where the file is, where there is one."""
        return self.root / ".bifolio" / LOG_FILE

    @cached_property
    def _engine(self) -> Engine:
        tables = Tables(SCHEMA, self._begin_log, self._refuse, "event_")
        prepare = partial(private_file, self.root, LOG_FILE)
        try:
            return make_engine(self.accounts, prepare, tables, size=1, replaced=_tell_replaced)
        except ModuleNotFoundError as error:
            raise LogUnavailableError(f"The log of events has no driver: {error}") from error

    @contextmanager
    def writing(self, seconds: float = LOCK_TIMEOUT_S) -> Iterator["Transaction"]:
        """A transaction that is done, or not done, with the block; it waits so long for those of others.

        One writes at a time, so that the order of events is that in which they are seen. Raises StorageError.
        """
        with self._engine.writing(seconds, claim=_CLAIM if self._is_shared else "") as connection:
            yield Transaction(connection, self.clone)
            self._own += 1

    def query(self, work: Callable[[Connection], T]) -> T:
        """What `work` reads with a connection, from one state. Raises StorageError."""
        with self._engine.reading() as connection:
            return work(connection)

    def read(self, since: int, most: int, *, with_paths: bool = False) -> list[Event]:
        """Up to so many events after one, in order; with the files that changed. Raises StorageError."""
        columns = f"{_COLUMNS}, seq" + (", paths" if with_paths else _NO_PATHS)
        statement = f"SELECT {columns} FROM events WHERE seq > ? ORDER BY seq LIMIT ?"
        return self.query(lambda c: [_event(row) for row in c.execute(statement, (since, most))])

    def bounds(self) -> Bounds:
        """Which events there are. Raises StorageError."""
        return self.query(_bounds)

    def last_before(self, time: str) -> int | None:
        """The last event before all that are from a time or later; None where the log begins after it.

        Raises StorageError.
        """
        return self.query(lambda c: _last_before(c, self.clone, time))

    def mark(self) -> int:
        """A number that differs whenever anybody else has written. Raises StorageError."""
        statement = "SELECT changes FROM log" if self._is_shared else "PRAGMA data_version"
        number: int = self.query(lambda c: c.execute(statement).fetchone()[0])
        return number - self._own if self._is_shared else number

    @cached_property
    def clone(self) -> str:
        """What `.bifolio/clone-id` says, which is made once; "" where no other clone of the site has the log.

        Raises StorageError.
        """
        if not self._is_shared:
            return ""
        try:
            path = state_folder(self.root) / CLONE_ID_FILE
            if not path.exists():
                make_once(path, secrets.token_hex(8).encode())
            return path.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise LogUnavailableError(f".bifolio/{CLONE_ID_FILE} can't be used: {error}") from error

    def leads(self) -> bool:
        """Whether this machine delivers webhooks, of those that share the log. Raises StorageError.

        It has a lock of PostgreSQL for that, which goes with the connection.
        """
        if not self._is_shared:
            return True
        if monotonic() < self._lead_at:
            return False
        statement = "SELECT pg_try_advisory_lock(?)"
        leads: bool = self.query(lambda c: c.execute(statement, (_ELECTION_LOCK,)).fetchone()[0])
        self._lead_at = 0.0 if leads else monotonic() + ELECTION_INTERVAL_S
        return leads

    def close(self) -> None:
        """Let go of the database."""
        if "_engine" in self.__dict__:
            self._engine.close()

    def _begin_log(self, connection: Connection) -> None:
        """Note the id of a log, and which number its events follow, unless that is noted.

        After a log that was damaged, numbers begin where it can't have come to.
        """
        again = self.path.with_name(LOG_FILE + DAMAGED_SUFFIX).exists() and not self._is_shared
        connection.execute(
            "INSERT INTO log (one, id, last, changes) VALUES (1, ?, ?, 0) ON CONFLICT (one) DO NOTHING",
            (secrets.token_hex(4), time_ns() // 10**6 if again else 0),
        )

    def _refuse(self, trouble: Trouble) -> StorageError:
        if not trouble.reason:
            return LogUnavailableError()
        error = LogUnavailableError if self._is_shared else StorageError
        return error(f"The log of events can't be used: {trouble.reason}")


def _tell_replaced() -> None:
    log.warning("%s was damaged; the log of events begins anew, and says so to its readers", LOG_FILE)


class Transaction:
    """One transaction that writes events, and the versions that they lead up to."""

    def __init__(self, connection: Connection, clone: str) -> None:
        self.connection, self.clone = connection, clone

    @property
    def is_shared(self) -> bool:
        """Whether other machines may have the log in common with this one."""
        return bool(self.clone)

    def of_all(self) -> "Transaction":
        """The same, with the versions, types and notes of all machines together."""
        return Transaction(self.connection, ALL_CLONES)

    def recorded(self, commits: Sequence[str]) -> set[str]:
        """Those of some commits whose events are recorded."""
        found = set[str]()
        for part in _parts(commits):
            statement = f"SELECT id FROM commits WHERE id IN ({_marks(part)})"
            found.update(row[0] for row in self.connection.execute(statement, part))
        return found

    def put_commits(self, commits: Iterable[str]) -> None:
        """The events of some commits are recorded; the oldest come first."""
        statement = "INSERT INTO commits (id) VALUES (?) ON CONFLICT (id) DO NOTHING"
        self.connection.executemany(statement, ((commit,) for commit in commits))

    def forget_commits(self, commits: Iterable[str]) -> None:
        """The events of some commits are not known to be recorded any more."""
        self.connection.executemany("DELETE FROM commits WHERE id = ?", ((commit,) for commit in commits))

    def told_by(self, paths: Sequence[str]) -> dict[str, Told]:
        """By what the last events of some files came, of those of which that is known."""
        found = dict[str, Told]()
        for part in _parts(paths):
            statement = f"SELECT path, clone, commit_id FROM told WHERE path IN ({_marks(part)})"
            found.update((path, Told(*by)) for path, *by in self.connection.execute(statement, part))
        return found

    def put_told(self, paths: Iterable[str], commit: str) -> None:
        """The last events of some files have come by a commit, "" for none yet, on this clone."""
        self.connection.executemany(
            "INSERT INTO told (path, clone, commit_id) VALUES (?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET clone = excluded.clone, commit_id = excluded.commit_id",
            ((path, self.clone, commit) for path in paths),
        )

    def told_here(self) -> list[str]:
        """The files whose last events have come by what is in no commit of this clone yet."""
        statement = "SELECT path FROM told WHERE clone = ? AND commit_id = ''"
        return [row[0] for row in self.connection.execute(statement, (self.clone,))]

    def value(self, name: str) -> str:
        """What is noted under a name; "" for nothing."""
        return _note(self.connection, self.clone, name)

    def note(self, name: str, value: str) -> None:
        """Note something under a name."""
        self.connection.execute(
            "INSERT INTO notes (clone, name, value) VALUES (?, ?, ?)"
            " ON CONFLICT (clone, name) DO UPDATE SET value = excluded.value",
            (self.clone, name, value),
        )

    def versions(self) -> Iterator[tuple[Any, ...]]:
        """All versions, as rows of what `Recorded` has."""
        return iter(
            self.connection.execute(f"SELECT {_VERSION} FROM versions WHERE clone = ?", (self.clone,))
        )

    def versions_at(self, paths: Collection[str]) -> dict[str, Recorded]:
        """The versions in some files."""
        return {version.path: version for version in self._versions("path", list(paths))}

    def versions_of(self, keys: Collection[Key]) -> list[Recorded]:
        """The versions of some documents, by path."""
        found = self._versions("document_id", list({key.document_id for key in keys}))
        return sorted(version for version in found if version.key in keys)

    def _versions(self, column: str, values: Sequence[str]) -> Iterator[Recorded]:
        for part in _parts(values):
            statement = f"SELECT {_VERSION} FROM versions WHERE clone = ? AND {column} IN ({_marks(part)})"
            for row in self.connection.execute(statement, (self.clone, *part)):
                yield Recorded(*row)

    def put_versions(self, versions: Iterable[Recorded], gone: Iterable[str] = ()) -> None:
        """Take versions in the place of those at their paths; at some paths are none any more."""
        delete = "DELETE FROM versions WHERE clone = ? AND path = ?"
        self.connection.executemany(delete, ((self.clone, path) for path in gone))
        self.connection.executemany(
            f"INSERT INTO versions (clone, {_VERSION}) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (clone, path) DO UPDATE SET mark = excluded.mark, uid = excluded.uid,"
            " document_id = excluded.document_id, locale = excluded.locale, status = excluded.status",
            ((self.clone, *version) for version in versions),
        )

    def shapes(self) -> dict[str, str]:
        """The shape of each type, by uid."""
        statement = "SELECT uid, shape FROM types WHERE clone = ?"
        return dict(self.connection.execute(statement, (self.clone,)).fetchall())

    def put_shapes(self, shapes: Iterable[tuple[str, str]]) -> None:
        """Take shapes in the place of all that there are."""
        self.connection.execute("DELETE FROM types WHERE clone = ?", (self.clone,))
        statement = "INSERT INTO types (clone, uid, shape) VALUES (?, ?, ?)"
        self.connection.executemany(statement, ((self.clone, *shape) for shape in shapes))

    def bounds(self) -> Bounds:
        """Which events there are."""
        return _bounds(self.connection)

    def append(self, events: Iterable[Event]) -> None:
        """Append events, which get the numbers that follow the last."""
        before = _bounds(self.connection).last
        rows = [
            (*_row(event), event.at, json.dumps(event.paths), seq)
            for seq, event in enumerate(events, before + 1)
        ]
        columns = f"{_COLUMNS}, paths, seq"
        marks = _marks(columns.split(","))
        self.connection.executemany(f"INSERT INTO events ({columns}) VALUES ({marks})", rows)
        self.connection.execute("UPDATE log SET last = ?", (before + len(rows),))
        if rows and self.is_shared:
            notify(self.connection, EVENTS, f"{before + len(rows)} {self.clone}")

    def committed(self, write: str, commit: str) -> None:
        """Name the commit of the events of a write."""
        statement = "UPDATE events SET commit_id = ? WHERE write_name = ? AND write_name != ''"
        self.connection.execute(statement, (commit, write))

    def forget(self, before: str, most: int | None) -> None:
        """Remove events that are older than a timestamp, "" for none, or more than so many."""
        last = _bounds(self.connection).last
        newest = self.connection.execute("SELECT max(number) FROM commits").fetchone()[0] or 0
        self.connection.execute("DELETE FROM commits WHERE number <= ?", (newest - MAX_COMMITS,))
        old = "commit_id != '' AND commit_id NOT IN (SELECT id FROM commits)"
        self.connection.execute(f"DELETE FROM told WHERE {old}")
        if before:
            self.connection.execute("DELETE FROM events WHERE at < ? AND seq < ?", (before, last))
        if most is not None:
            self.connection.execute("DELETE FROM events WHERE seq <= ?", (last - most,))


def _bounds(connection: Connection) -> Bounds:
    log_id, last = connection.execute("SELECT id, last FROM log").fetchone()
    first = connection.execute("SELECT min(seq) FROM events").fetchone()[0] or 0
    return Bounds(log_id, first, last)


def _note(connection: Connection, clone: str, name: str) -> str:
    statement = "SELECT value FROM notes WHERE clone = ? AND name = ?"
    row = connection.execute(statement, (clone, name)).fetchone()
    return row[0] if row else ""


def _last_before(connection: Connection, clone: str, time: str) -> int | None:
    begun = _note(connection, clone, BEGIN_NOTE)
    found = connection.execute("SELECT min(seq) FROM events WHERE at >= ?", (time,)).fetchone()[0]
    bounds = _bounds(connection)
    last: int = found - 1 if found else bounds.last
    forgotten = bounds.last > 0 and last < (bounds.first or bounds.last + 1) and bounds.first != 1
    return None if not begun or begun > time or forgotten else last


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[at : at + _MAX_PARAMETERS] for at in range(0, len(values), _MAX_PARAMETERS))


def _marks(values: Collection[Any]) -> str:
    return ",".join("?" * len(values))


def _row(event: Event) -> tuple[Any, ...]:
    links = dict(event.links)
    names = None if event.changed is None else [[n, *links[n]] if n in links else n for n in event.changed]
    changed = None if names is None else json.dumps(names)
    counts = None if event.counts is None else json.dumps(event.counts)
    at = (event.kind, event.uid, event.document_id, event.locale, event.status, changed)
    return (*at, event.actor, event.source, event.commit, event.write, counts, int(event.hidden))


def _event(row: tuple[Any, ...]) -> Event:
    kind, uid, document_id, locale, status, changed, *origin, counts, hidden, at, seq, paths = row
    names, links = (None, ()) if changed is None else _changed(json.loads(changed))
    told = None if counts is None else json.loads(counts)
    about = Event(kind, uid, document_id, locale, status, names, *origin)
    found = tuple(json.loads(paths))
    return replace(about, links=links, counts=told, hidden=bool(hidden), paths=found, at=at, seq=seq)


def _changed(entries: list[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    """The names in a column `changed`, and of those that are lists the types that follow the name."""
    names = tuple(entry[0] if isinstance(entry, list) else entry for entry in entries)
    return names, tuple((entry[0], tuple(entry[1:])) for entry in entries if isinstance(entry, list))
