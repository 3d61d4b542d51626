"""What one process knows of a site: its state, which is what the records so far come to.

Every change, whoever finds it, is appended to the log first and applied then; nothing else changes
the state. So all workers show the same states in the same order, and differ only in how far each is.
"""

import threading
import time
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from server.config.model import Settings
from server.documents.document import Document
from server.errors import UnreadableRecordError
from server.index.snapshot import Snapshot, apply, build, empty
from server.schema.model import Schema
from server.site.change import FILES_ORIGIN, Change, Observe, Origin
from server.site.change_log import REPLACEMENT_TIMEOUT_NS, ChangeLog
from server.site.configure import Configuration
from server.site.contents import Contents
from server.site.loading import give_back, pause_collector
from server.site.problems import note_of, read_note
from server.site.record import Record, decode, encode
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.git.times import CommitTimes

Result = TypeVar("Result")
MAX_AWAITED_BYTES = 1_000_000  # Every request waits until a record of so many bytes is applied.
MIN_LARGE_FILES = 1000  # What a change of so many files has taken of memory is given back to the system.
RELEASE_DELAY_S = 2.0  # After such a change, until no request uses the old state any more.


@dataclass(frozen=True, slots=True)
class State:
    """What a request sees: settings, schema and documents that belong together.

    `shown_at` is since when this process shows them, in seconds since 1970. `commit` is the one that is
    checked out, "" where there is none; `changed`, whether files differ from it.
    """

    settings: Settings
    schema: Schema
    snapshot: Snapshot
    shown_at: float = field(default_factory=time.time, compare=False)
    commit: str = ""
    changed: bool = False

    def shows_as_much_as(self, other: "State") -> bool:
        """Whether it shows the same as another, which may be at another commit."""
        return self.snapshot is other.snapshot and self.settings is other.settings


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Result]):
    """A change of one state: its files, what is returned of it, and whether it took long to prepare."""

    state: State
    changeset: Changeset
    result: Result
    took_long: bool


class Overtaken(Exception):
    """A change that took long to prepare is one of a state that is no longer shown."""


class Replica:
    """A site's contents and state in one process; alone, or beside others that share a log."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        settings, schema = contents.configuration.settings, contents.configuration.schema
        self.state = State(settings, schema, empty(schema))
        self._lock = threading.RLock()  # held while records are applied
        self._log: ChangeLog | None = None
        self._position = 0  # in the log, up to which all records are applied
        self._torn = False  # whether the contents may have a part of a record that failed, and the state not
        self.observe: Observe | None = None

    def basis(self) -> tuple[State, Configuration, CommitTimes, dict[str, Entry]]:
        """The state, and what it was made of at the same time: configuration, times of commits, entries."""
        with self._lock:
            contents = self.contents
            return self.state, contents.configuration, contents.git.committed, dict(contents.entries)

    def share(self, log: ChangeLog) -> None:
        """Have a log in common with the processes that are forked from now on."""
        log.newest = self.contents.number
        self._log, self._position = log, log.end

    @property
    def is_shared(self) -> bool:
        """Whether other processes show the same: before, nobody is served whom another one could serve."""
        return self._log is not None

    def succeed(self, log: ChangeLog) -> Change:
        """Let what this process has read be the next record in a log, and share it (`ChangeLog.begin_anew`).

        Call it under the site's write lock. Returns what that changes for people who watch.
        """
        change, same_roles = read_note(log.note, self.contents)
        event = self.observe(self.contents, Record(), FILES_ORIGIN) if self.observe else None
        self.contents.number = log.newest + 1
        log.begin_anew(encode(self.contents.whole()), lag=same_roles)
        self.share(log)
        self._tell(event)
        return change

    def record(self) -> None:
        """Let what observes changes catch up; call it under the site's write lock."""
        self._tell(self.observe(self.contents, Record(), FILES_ORIGIN) if self.observe else None)

    def _tell(self, event: int | None) -> None:
        """Let all workers know up to which event everybody is shown what it is about."""
        if self._log is not None and event is not None:
            self._log.event = event

    def leave_note(self) -> None:
        """Tell those that will take the place of all workers what has been shown so far."""
        if self._log is not None:
            self._log.note = note_of(self.contents)

    def current(self) -> State:
        """The state, with every record in it that some process may have answered from.

        Raises UnreadableRecordError; see `catch_up`.
        """
        log = self._log
        if log is not None and log.demanded > self._position and not log.may_lag(self._position):
            self.catch_up()
        return self.state

    @property
    def is_replaced(self) -> bool:
        """Whether another process is about to take the place of this one, which then need not catch up."""
        return self._log is not None and self._log.may_lag(self._position, REPLACEMENT_TIMEOUT_NS)

    def catch_up(self) -> None:
        """Apply the records that other processes have appended.

        Raises UnreadableRecordError for one that can't be applied.
        """
        log = self._log
        if log is None or log.end == self._position:
            return
        with self._lock:
            try:
                position, data = log.since(self._position)
                with pause_collector() if sum(map(len, data)) > MAX_AWAITED_BYTES else nullcontext():
                    if data:
                        records = self._decode(data)
                        self._torn = True
                        self._apply(records)
                        self._torn = False
            except Exception as error:  # Whatever it is, the files have everything that the record has.
                raise UnreadableRecordError(f"{type(error).__name__}: {error}") from error
            self._position = position  # Set last: other threads wait for this position.

    def skip(self) -> None:
        """Leave out the records that can't be applied, once the contents have what they say.

        Call it under the site's write lock.
        """
        log, contents = self._log, self.contents
        if log is None:
            return
        with self._lock:
            if self._torn:
                built = build(contents.configuration.schema, contents.documents)
                self._show(replace(built, number=self.state.snapshot.number + 1))
                self._torn = False
            contents.number = max(contents.number, log.newest)
            self._position = log.end

    def append(self, record: Record, origin: Origin = FILES_ORIGIN) -> list[Document]:
        """Append a record and apply it; call it under the site's write lock, having caught up.

        Returns the documents that it takes away and adds, none where it replaces everything.
        """
        newest = self._log.newest if self._log else 0  # It has not applied all that can't be read.
        record = replace(record, number=max(newest, self.contents.number) + 1)
        event = self.observe(self.contents, record, origin) if self.observe else None
        with self._lock:
            position = self._append(self._log, record) if self._log else self._position
            changed = self._apply([record])
            self._position = position
        if self._log:
            self._log.wait_for_laggards()
        self._tell(event)
        return changed

    def _append(self, log: ChangeLog, record: Record) -> int:
        data = encode(record)
        settings = record.configuration.settings if record.configuration else self.state.settings
        demanded = len(data) <= MAX_AWAITED_BYTES or settings.roles != self.state.settings.roles
        if record.configuration:
            log.note = b""  # What it says of roles may be wrong now.
        position = log.append(data, lambda: encode(self.contents.whole()), demanded=demanded)
        log.newest = record.number
        return position

    def _decode(self, data: Iterable[bytes]) -> list[Record]:
        """Decode records; each may bring the schema of those that follow.

        Rows are read once, or else a damaged one would fail requests later; a whole record has too many
        for that. It replaces those before it, even undecodable ones. Raises what decoding raises.
        """
        schema = self.contents.configuration.schema
        records: list[Record] = []
        failure: Exception | None = None
        for one in data:
            try:
                record = decode(one, schema)
                for entry in () if record.whole else record.entries.values():
                    if entry and entry.document:
                        entry.document.read_row()
            except Exception as error:
                failure = failure or error
                continue
            if record.whole:
                failure = None
                records.clear()
            if record.configuration:
                schema = record.configuration.schema
            records.append(record)
        if failure:
            raise failure
        return records

    def _apply(self, records: list[Record]) -> list[Document]:
        """Apply records one after the other, and show what they come to as one state.

        Returns the documents that are taken away and added.
        """
        snapshot, whole = self.state.snapshot, records[0].whole
        is_large = whole or sum(len(record.entries) for record in records) >= MIN_LARGE_FILES
        removed, added = self.contents.changes(records) if not whole else (list[Document](), list[Document]())
        if removed or added:
            snapshot = apply(snapshot, removed, added)
        for record in records:
            self.contents.apply(record)
        configuration = self.contents.configuration
        if whole:
            built = build(configuration.schema, self.contents.documents)
            snapshot = replace(built, number=snapshot.number + 1)
        if is_large:
            for document in added:  # They were compared with those before; nobody has them yet.
                document.drop_row()
            self._give_back_later()
        self._show(snapshot)
        return [*removed, *added]

    def _give_back_later(self) -> None:
        if self._log is not None:
            later = threading.Timer(RELEASE_DELAY_S, give_back)
            later.daemon = True
            later.start()

    def _show(self, snapshot: Snapshot) -> None:
        configuration, shown = self.contents.configuration, self.state
        if snapshot is not shown.snapshot or configuration.settings != shown.settings:
            shown = State(configuration.settings, configuration.schema, snapshot)
        commit, changed = self.contents.git.committed.commit, bool(self.contents.uncommitted)
        if (commit, changed) != (shown.commit, shown.changed):
            shown = replace(shown, commit=commit, changed=changed)
        self.state = shown  # at once: nobody may see a state with the commit of another
