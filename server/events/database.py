"""The log of events: the events of a site in their order, and which versions they lead up to.

Both are written in one transaction, so that whoever compares the versions with the site's files knows which
changes have no events yet. It is in `.quire/events.db`, or in PostgreSQL where the accounts are there.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, TypeVar, cast

from server.database.address import is_postgres
from server.database.notices import EVENTS, NOTIFY, message
from server.errors import LogUnavailableError
from server.events.engines.engine import Connection, Engine
from server.events.engines.sqlite import FILE, Sqlite
from server.events.model import Event, Key

T = TypeVar("T")

ALL = "*"  # stands for all clones together
MOST_COMMITS = 10_000  # that are known to be recorded
BEGUN = "begun"  # the note of when versions were first recorded
WAIT_S = 10.0  # how long a transaction waits for those of other processes
_COLUMNS = (
    "kind, uid, document_id, locale, status, changed, actor, source, commit_id, write_name, counts, hidden"
    ", at"
)
_VERSION = "path, mark, uid, document_id, locale, status"
_NO_PATHS = ", '[]'"
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

    @property
    def path(self) -> Path:
        """Where the file is, where there is one."""
        return self.root / ".quire" / FILE

    @cached_property
    def _engine(self) -> Engine:
        if not is_postgres(self.accounts):
            return Sqlite(self.root)
        try:
            module = import_module("server.events.engines.postgres")  # docs/packages.py, LAZY
        except ModuleNotFoundError as error:
            raise LogUnavailableError(f"The log of events has no driver: {error}") from error
        return cast(Engine, module.Postgres(self.root, self.accounts))

    @contextmanager
    def writing(self, seconds: float = WAIT_S) -> Iterator["Transaction"]:
        """A transaction that is done, or not done, with the block; it waits so long for those of others.

        Raises StorageError.
        """
        with self._engine.writing(seconds) as connection:
            yield Transaction(connection, self._engine.clone)

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
        return self.query(lambda c: _last_before(c, self._engine.clone, time))

    def mark(self) -> int:
        """A number that differs whenever anybody else has written. Raises StorageError."""
        return self._engine.mark()

    @property
    def clone(self) -> str:
        """The id of this clone of the site, "" where no other has the log in common. Raises StorageError."""
        return self._engine.clone

    def leads(self) -> bool:
        """Whether this machine delivers webhooks, of those that share the log. Raises StorageError."""
        return self._engine.leads()

    def close(self) -> None:
        """Let go of the database."""
        if "_engine" in self.__dict__:
            self._engine.close()


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
        return Transaction(self.connection, ALL)

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
            told = message(EVENTS, f"{before + len(rows)} {self.clone}")
            self.connection.execute(NOTIFY.replace("%s", "?"), (told,))

    def committed(self, write: str, commit: str) -> None:
        """Name the commit of the events of a write."""
        statement = "UPDATE events SET commit_id = ? WHERE write_name = ? AND write_name != ''"
        self.connection.execute(statement, (commit, write))

    def forget(self, before: str, most: int | None) -> None:
        """Remove events that are older than a timestamp, "" for none, or more than so many."""
        last = _bounds(self.connection).last
        newest = self.connection.execute("SELECT max(number) FROM commits").fetchone()[0] or 0
        self.connection.execute("DELETE FROM commits WHERE number <= ?", (newest - MOST_COMMITS,))
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
    begun = _note(connection, clone, BEGUN)
    found = connection.execute("SELECT min(seq) FROM events WHERE at >= ?", (time,)).fetchone()[0]
    bounds = _bounds(connection)
    last: int = found - 1 if found else bounds.last
    forgotten = bounds.last > 0 and last < (bounds.first or bounds.last + 1) and bounds.first != 1
    return None if not begun or begun > time or forgotten else last


def _parts(values: Sequence[T]) -> Iterator[Sequence[T]]:
    return (values[at : at + _FEW] for at in range(0, len(values), _FEW))


def _marks(values: Collection[Any]) -> str:
    return ",".join("?" * len(values))


def _row(event: Event) -> tuple[Any, ...]:
    changed = None if event.changed is None else json.dumps(event.changed)
    counts = None if event.counts is None else json.dumps(event.counts)
    at = (event.kind, event.uid, event.document_id, event.locale, event.status, changed)
    return (*at, event.actor, event.source, event.commit, event.write, counts, int(event.hidden))


def _event(row: tuple[Any, ...]) -> Event:
    kind, uid, document_id, locale, status, changed, *origin, counts, hidden, at, seq, paths = row
    names = None if changed is None else tuple(json.loads(changed))
    told = None if counts is None else json.loads(counts)
    about = Event(kind, uid, document_id, locale, status, names, *origin)
    found = tuple(json.loads(paths))
    return replace(about, counts=told, hidden=bool(hidden), paths=found, at=at, seq=seq)
