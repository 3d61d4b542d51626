"""Database of the event log. If `.bifolio/events.db` is damaged or missing, a new, empty log replaces it."""

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
from server.database.engine import LOCK_TIMEOUT_S, Connection, DatabaseFailure, Engine, Tables
from server.database.file import private_file
from server.database.notices import EVENTS, notify
from server.database.opening import make_engine
from server.database.sqlite import DAMAGED_SUFFIX
from server.errors import LogUnavailableError, StorageError
from server.events.model import PUBLIC_KINDS, Event, Key
from server.events.tables import SCHEMA
from server.paths import state_folder
from server.storage.durable import create_private_file

log = logging.getLogger("bifolio")

T = TypeVar("T")

ALL_CLONES = "*"
MAX_COMMITS = 10_000  # limit on recorded commits
BEGIN_NOTE = "begun"  # name of the note that stores when the log began
LOG_FILE, CLONE_ID_FILE = "events.db", "clone-id"  # in `.bifolio/`
ELECTION_INTERVAL_S = 2.0  # how often a machine tries to become the one that delivers webhooks
_ELECTION_LOCK = 0x71756972650002  # key of the PostgreSQL advisory lock
_CLAIM = "UPDATE log SET changes = changes + 1"
_COLUMNS = (
    "kind, uid, document_id, locale, status, changed, actor, source, commit_id, write_name, counts, hidden"
    ", at"
)
_VERSION = "path, mark, uid, document_id, locale, status"
_NO_PATHS = ", '[]'"
_MAX_PARAMETERS = 400  # in one SQL statement


class LoggedVersion(NamedTuple):
    """The document version that a file contained when a change to the file was last logged.

    `digest` is a hash of the file's content.
    """

    path: str
    digest: bytes
    uid: str
    document_id: str
    locale: str
    status: str

    @property
    def key(self) -> Key:
        return Key(self.uid, self.document_id, self.locale)


class LastOrigin(NamedTuple):
    """The clone that logged a file's last event, and the commit that contains the change.

    `commit` is "" if the change was not committed.
    """

    clone: str
    commit: str


@dataclass(frozen=True, slots=True)
class Bounds:
    """The id of an event log, and the numbers of its first and last events.

    `first` is 0 if the log contains no events.
    """

    id: str
    first: int
    last: int


class EventDatabase:
    """A site's event log. It is in `.bifolio/events.db`, or in the accounts database if that uses PostgreSQL.

    Thread-safe, but each process must create its own instance.
    """

    def __init__(self, root: Path, accounts_url: str = "") -> None:
        self.root, self.accounts = root, accounts_url
        self._is_shared = is_postgres(accounts_url)
        self._own_writes = 0  # number of write transactions by this object
        self._lead_at = 0.0

    @property
    def path(self) -> Path:
        return self.root / ".bifolio" / LOG_FILE

    @cached_property
    def _engine(self) -> Engine:
        tables = Tables(SCHEMA, self._begin_log, self._storage_error, "event_")
        prepare = partial(private_file, self.root, LOG_FILE)
        try:
            return make_engine(self.accounts, prepare, tables, pool_size=1, on_replaced=_log_replacement)
        except ModuleNotFoundError as error:
            raise LogUnavailableError(f"The event log requires a database driver: {error}") from error

    @contextmanager
    def writing(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator["Transaction"]:
        """Open a write transaction. Raises StorageError if it can't begin within `timeout_s` seconds."""
        with self._engine.writing(timeout_s, lock_statement=_CLAIM if self._is_shared else "") as connection:
            yield Transaction(connection, self.clone_id)
            self._own_writes += 1

    def query(self, work: Callable[[Connection], T]) -> T:
        with self._engine.reading() as connection:
            return work(connection)

    def read(
        self, since: int, limit: int, *, with_paths: bool = False, with_public: bool = False
    ) -> list[Event]:
        """Return up to `limit` events with numbers above `since`, in order.

        If `with_public` is set, this includes the events that are meant only for callers who may not read
        drafts. Raises StorageError if the log can't be read.
        """
        columns = f"{_COLUMNS}, seq" + (", paths" if with_paths else _NO_PATHS)
        kinds = () if with_public else tuple(PUBLIC_KINDS)
        condition = f" AND kind NOT IN ({_marks(kinds)})" if kinds else ""
        statement = f"SELECT {columns} FROM events WHERE seq > ?{condition} ORDER BY seq LIMIT ?"
        events = self.query(lambda c: [_event(row) for row in c.execute(statement, (since, *kinds, limit))])
        return events if with_public else [_without_public_counts(event) for event in events]

    def bounds(self) -> Bounds:
        return self.query(_bounds)

    def last_number_before(self, time: str) -> int | None:
        """Return the number of the last event before a time, or None if the log does not reach back that far.

        Raises StorageError if the log can't be read.
        """
        return self.query(lambda c: _last_before(c, self.clone_id, time))

    def external_write_counter(self) -> int:
        """Return a number that changes whenever another process writes to the log.

        Raises StorageError if the log can't be read.
        """
        statement = "SELECT changes FROM log" if self._is_shared else "PRAGMA data_version"
        number: int = self.query(lambda c: c.execute(statement).fetchone()[0])
        return number - self._own_writes if self._is_shared else number

    @cached_property
    def clone_id(self) -> str:
        """The id of this clone of the site, or "" if the log is not shared with other machines.

        Raises StorageError if the file with the id can't be used.
        """
        if not self._is_shared:
            return ""
        try:
            path = state_folder(self.root) / CLONE_ID_FILE
            if not path.exists():
                create_private_file(path, secrets.token_hex(8).encode())
            return path.read_text("ascii").strip()
        except (OSError, ValueError) as error:
            raise LogUnavailableError(f".bifolio/{CLONE_ID_FILE} can't be used: {error}") from error

    def is_deliverer(self) -> bool:
        """Return whether this machine delivers webhooks. It takes over if no other machine does.

        Raises StorageError if the log's database can't be used.
        """
        if not self._is_shared:
            return True
        if monotonic() < self._lead_at:
            return False
        statement = "SELECT pg_try_advisory_lock(?)"
        is_deliverer: bool = self.query(lambda c: c.execute(statement, (_ELECTION_LOCK,)).fetchone()[0])
        self._lead_at = 0.0 if is_deliverer else monotonic() + ELECTION_INTERVAL_S
        return is_deliverer

    def close(self) -> None:
        if "_engine" in self.__dict__:
            self._engine.close()

    def _begin_log(self, connection: Connection) -> None:
        # In a log that replaces a damaged one, numbering starts at the current time in milliseconds. This is
        # higher than any number in the old log.
        again = self.path.with_name(LOG_FILE + DAMAGED_SUFFIX).exists() and not self._is_shared
        connection.execute(
            "INSERT INTO log (one, id, last, changes) VALUES (1, ?, ?, 0) ON CONFLICT (one) DO NOTHING",
            (secrets.token_hex(4), time_ns() // 10**6 if again else 0),
        )

    def _storage_error(self, trouble: DatabaseFailure) -> StorageError:
        if not trouble.reason:
            return LogUnavailableError()
        error = LogUnavailableError if self._is_shared else StorageError
        return error(f"The event log can't be used: {trouble.reason}")


def _log_replacement() -> None:
    log.warning(
        "%s was damaged and has been replaced; clients must read the event log from its start", LOG_FILE
    )


class Transaction:
    """Write transaction on the event log. It stores events and the new versions of the changed files."""

    def __init__(self, connection: Connection, clone: str) -> None:
        self.connection, self.clone = connection, clone

    @property
    def is_shared(self) -> bool:
        return bool(self.clone)

    def for_all_clones(self) -> "Transaction":
        return Transaction(self.connection, ALL_CLONES)

    def recorded(self, commits: Sequence[str]) -> set[str]:
        found = set[str]()
        for part in _parts(commits):
            statement = f"SELECT id FROM commits WHERE id IN ({_marks(part)})"
            found.update(row[0] for row in self.connection.execute(statement, part))
        return found

    def put_commits(self, commits: Iterable[str]) -> None:
        statement = "INSERT INTO commits (id) VALUES (?) ON CONFLICT (id) DO NOTHING"
        self.connection.executemany(statement, ((commit,) for commit in commits))

    def forget_commits(self, commits: Iterable[str]) -> None:
        self.connection.executemany("DELETE FROM commits WHERE id = ?", ((commit,) for commit in commits))

    def last_sources(self, paths: Sequence[str]) -> dict[str, LastOrigin]:
        found = dict[str, LastOrigin]()
        for part in _parts(paths):
            statement = f"SELECT path, clone, commit_id FROM told WHERE path IN ({_marks(part)})"
            found.update((path, LastOrigin(*by)) for path, *by in self.connection.execute(statement, part))
        return found

    def put_last_sources(self, paths: Iterable[str], commit: str) -> None:
        self.connection.executemany(
            "INSERT INTO told (path, clone, commit_id) VALUES (?, ?, ?)"
            " ON CONFLICT (path) DO UPDATE SET clone = excluded.clone, commit_id = excluded.commit_id",
            ((path, self.clone, commit) for path in paths),
        )

    def uncommitted_paths(self) -> list[str]:
        statement = "SELECT path FROM told WHERE clone = ? AND commit_id = ''"
        return [row[0] for row in self.connection.execute(statement, (self.clone,))]

    def read_note(self, name: str) -> str:
        return _note(self.connection, self.clone, name)

    def write_note(self, name: str, value: str) -> None:
        self.connection.execute(
            "INSERT INTO notes (clone, name, value) VALUES (?, ?, ?)"
            " ON CONFLICT (clone, name) DO UPDATE SET value = excluded.value",
            (self.clone, name, value),
        )

    def versions(self) -> Iterator[tuple[Any, ...]]:
        return iter(
            self.connection.execute(f"SELECT {_VERSION} FROM versions WHERE clone = ?", (self.clone,))
        )

    def versions_at(self, paths: Collection[str]) -> dict[str, LoggedVersion]:
        return {version.path: version for version in self._versions("path", list(paths))}

    def versions_of(self, keys: Collection[Key]) -> list[LoggedVersion]:
        found = self._versions("document_id", list({key.document_id for key in keys}))
        return sorted(version for version in found if version.key in keys)

    def _versions(self, column: str, values: Sequence[str]) -> Iterator[LoggedVersion]:
        for part in _parts(values):
            statement = f"SELECT {_VERSION} FROM versions WHERE clone = ? AND {column} IN ({_marks(part)})"
            for row in self.connection.execute(statement, (self.clone, *part)):
                yield LoggedVersion(*row)

    def put_versions(self, versions: Iterable[LoggedVersion], gone: Iterable[str] = ()) -> None:
        delete = "DELETE FROM versions WHERE clone = ? AND path = ?"
        self.connection.executemany(delete, ((self.clone, path) for path in gone))
        self.connection.executemany(
            f"INSERT INTO versions (clone, {_VERSION}) VALUES (?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT (clone, path) DO UPDATE SET mark = excluded.mark, uid = excluded.uid,"
            " document_id = excluded.document_id, locale = excluded.locale, status = excluded.status",
            ((self.clone, *version) for version in versions),
        )

    def shapes(self) -> dict[str, str]:
        statement = "SELECT uid, shape FROM types WHERE clone = ?"
        return dict(self.connection.execute(statement, (self.clone,)).fetchall())

    def put_shapes(self, shapes: Iterable[tuple[str, str]]) -> None:
        self.connection.execute("DELETE FROM types WHERE clone = ?", (self.clone,))
        statement = "INSERT INTO types (clone, uid, shape) VALUES (?, ?, ?)"
        self.connection.executemany(statement, ((self.clone, *shape) for shape in shapes))

    def bounds(self) -> Bounds:
        return _bounds(self.connection)

    def append(self, events: Iterable[Event]) -> None:
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
        statement = "UPDATE events SET commit_id = ? WHERE write_name = ? AND write_name != ''"
        self.connection.execute(statement, (commit, write))

    def forget(self, before: str, max_count: int | None) -> None:
        """Delete the events that are older than `before` or exceed `max_count`, oldest first.

        If `before` is "" or `max_count` is None, that limit does not apply. The newest event is never deleted
        for its age.
        """
        last = _bounds(self.connection).last
        newest = self.connection.execute("SELECT max(number) FROM commits").fetchone()[0] or 0
        self.connection.execute("DELETE FROM commits WHERE number <= ?", (newest - MAX_COMMITS,))
        old = "commit_id != '' AND commit_id NOT IN (SELECT id FROM commits)"
        self.connection.execute(f"DELETE FROM told WHERE {old}")
        if before:
            self.connection.execute("DELETE FROM events WHERE at < ? AND seq < ?", (before, last))
        if max_count is not None:
            self.connection.execute("DELETE FROM events WHERE seq <= ?", (last - max_count,))


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
    numbers = None if counts is None else json.loads(counts)
    event = Event(kind, uid, document_id, locale, status, names, *origin)
    event = replace(event, links=links, counts=numbers, hidden=bool(hidden))
    return replace(event, paths=tuple(json.loads(paths)), at=at, seq=seq)


def _changed(entries: list[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, tuple[str, ...]], ...]]:
    # Returns the names of the attributes, and `Event.links`.
    names = tuple(entry[0] if isinstance(entry, list) else entry for entry in entries)
    return names, tuple((entry[0], tuple(entry[1:])) for entry in entries if isinstance(entry, list))


def _without_public_counts(event: Event) -> Event:
    if event.counts is None:
        return event
    counts = {
        uid: {
            status: {kind: count for kind, count in kinds.items() if kind not in PUBLIC_KINDS}
            for status, kinds in by_status.items()
        }
        for uid, by_status in event.counts.items()
    }
    return replace(event, counts=counts)
