"""The state of a site in one process."""

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from server.config.model import Settings
from server.documents.document import Document
from server.errors import UnreadableRecordError
from server.index.snapshot import Snapshot, apply, build, empty
from server.schema.model import Schema
from server.site.change import OTHER_PROGRAM, Change, Origin, RecordObserver
from server.site.change_log import REPLACEMENT_TIMEOUT_NS, ChangeLog
from server.site.configure import Configuration
from server.site.contents import Contents
from server.site.entry_packing import EntryPacking
from server.site.loading import paused_garbage_collection, release_free_memory
from server.site.problems import compare_handover_note, make_handover_note
from server.site.record import Record, decode, encode, encode_header
from server.storage.changeset import Changeset
from server.storage.entry import Entry
from server.storage.git.times import CommitTimes

Result = TypeVar("Result")
MAX_AWAITED_BYTES = 1_000_000  # a request waits until new records up to this size are applied
# After a change to this many files, freed memory is returned to the operating system.
MIN_LARGE_FILES = 1000
RELEASE_DELAY_S = 2.0  # after this time, no request still uses the old state


@dataclass(frozen=True, slots=True)
class State:
    """The data that a request reads.

    `first_served_at` is in seconds since 1970. `commit` is the id of the checked-out commit, or "" if no
    commit is known.
    """

    settings: Settings
    schema: Schema
    snapshot: Snapshot
    first_served_at: float = field(default_factory=time.time, compare=False)
    commit: str = ""
    has_uncommitted_changes: bool = False

    def shows_same_content(self, other: "State") -> bool:
        # The two states can still differ in their commits.
        return self.snapshot is other.snapshot and self.settings is other.settings


@dataclass(frozen=True, slots=True)
class Prepared(Generic[Result]):
    """A change that has been prepared, but not written yet.

    `cpu_s` is the CPU time that this took, plus the running time of git commands, in seconds.
    """

    state: State
    changeset: Changeset
    result: Result
    cpu_s: float


class StateChangedError(Exception):
    """Error raised if the state has changed while a slow write was being prepared."""


class Replica:
    """The state of a site in one process. Several processes can share a change log."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        settings, schema = contents.configuration.settings, contents.configuration.schema
        self.state = State(settings, schema, empty(schema))
        self._lock = threading.RLock()  # held while records are applied
        self._log: ChangeLog | None = None
        self._position = 0  # position in the log after the last applied record
        self._torn = False  # whether a failure may have left records partly applied
        self.observe: RecordObserver | None = None
        self._packing: EntryPacking | None = None

    def basis(self) -> tuple[State, Configuration, CommitTimes, dict[str, Entry]]:
        with self._lock:
            contents = self.contents
            return self.state, contents.configuration, contents.git.committed, dict(contents.entries)

    def share(self, log: ChangeLog) -> None:
        log.newest_record = self.contents.last_record
        self._log, self._position = log, log.end

    @property
    def is_shared(self) -> bool:
        return self._log is not None

    def start_packing(self, entries: Mapping[str, Entry]) -> None:
        """Start to serialize `entries` in a forked process. `start_new_generation` uses the result."""
        self._packing = EntryPacking(entries)

    def start_new_generation(self, log: ChangeLog) -> Change:
        """Append a full record to the log, for new workers.

        Return the change since the old workers left their handover note. The caller must hold the write lock.
        """
        change, same_roles = compare_handover_note(log.handover_note, self.contents)
        event = self.observe(self.contents, Record(), OTHER_PROGRAM) if self.observe else None
        self.contents.last_record = log.newest_record + 1
        packed = self._packing.finish(self.contents.entries) if self._packing else b""
        self._packing = None
        record = self.contents.full_record()
        parts = (encode_header(record), packed) if packed else (encode(record),)
        log.append_full_record(parts, lag=same_roles)
        self.share(log)
        self._publish_event(event)
        return change

    def record(self) -> None:
        self._publish_event(self.observe(self.contents, Record(), OTHER_PROGRAM) if self.observe else None)

    def _publish_event(self, event: int | None) -> None:
        if self._log is not None and event is not None:
            self._log.last_event = event

    def leave_handover_note(self) -> None:
        if self._log is not None:
            self._log.handover_note = make_handover_note(self.contents)

    def current(self) -> State:
        """Apply all records that workers must have applied by now, and return the state.

        Raises UnreadableRecordError if a record can't be applied.
        """
        log = self._log
        if log is not None and log.required_position > self._position and not log.may_lag(self._position):
            self.catch_up()
        return self.state

    @property
    def is_replaced(self) -> bool:
        """True if this process can ignore new records, because another one will soon replace it."""
        return self._log is not None and self._log.may_lag(self._position, REPLACEMENT_TIMEOUT_NS)

    def catch_up(self) -> None:
        """Apply the records of other processes. Raises UnreadableRecordError if one can't be applied."""
        log = self._log
        if log is None or log.end == self._position:
            return
        with self._lock:
            try:
                position, data = log.records_since(self._position)
                with (
                    paused_garbage_collection() if sum(map(len, data)) > MAX_AWAITED_BYTES else nullcontext()
                ):
                    if data:
                        records = self._decode(data)
                        self._torn = True
                        self._apply(records)
                        self._torn = False
            except Exception as error:  # The caller can rescan the files instead.
                raise UnreadableRecordError(f"{type(error).__name__}: {error}") from error
            self._position = position  # set last, because other threads check it without the lock

    def skip_new_records(self) -> None:
        """Skip the new records, because one of them can't be applied.

        The contents must already include the changes in these records. The caller must hold the write lock.
        """
        log, contents = self._log, self.contents
        if log is None:
            return
        with self._lock:
            if self._torn:
                built = build(contents.configuration.schema, contents.documents)
                self._show(replace(built, number=self.state.snapshot.number + 1))
                self._torn = False
            contents.last_record = max(contents.last_record, log.newest_record)
            self._position = log.end

    def append(self, record: Record, origin: Origin = OTHER_PROGRAM) -> list[Document]:
        """Append a record to the change log, and apply it.

        Return the documents that it removed and added, or an empty list for a full record. The caller must
        hold the write lock, and must have applied all earlier records.
        """
        newest = self._log.newest_record if self._log else 0  # Count records that can't be read, too.
        record = replace(record, number=max(newest, self.contents.last_record) + 1)
        event = self.observe(self.contents, record, origin) if self.observe else None
        with self._lock:
            position = self._append(self._log, record) if self._log else self._position
            changed = self._apply([record])
            self._position = position
        if self._log:
            self._log.wait_for_laggards()
        self._publish_event(event)
        return changed

    def _append(self, log: ChangeLog, record: Record) -> int:
        data = encode(record)
        settings = record.configuration.settings if record.configuration else self.state.settings
        demanded = len(data) <= MAX_AWAITED_BYTES or settings.roles != self.state.settings.roles
        if record.configuration:
            log.handover_note = b""  # The roles in the note may be out of date.
        position = log.append(data, lambda: encode(self.contents.full_record()), is_required=demanded)
        log.newest_record = record.number
        return position

    def _decode(self, data: Iterable[bytes]) -> list[Record]:
        # Rows are unpacked now, so that a damaged row can't make a later request fail. A record of the entire
        # site is not unpacked, because that would use too much memory. It replaces all earlier records, so
        # errors in them do not matter.
        schema = self.contents.configuration.schema
        records: list[Record] = []
        failure: Exception | None = None
        for one in data:
            try:
                record = decode(one, schema)
                for entry in () if record.is_complete else record.entries.values():
                    if entry and entry.document:
                        entry.document.read_row()
            except Exception as error:
                failure = failure or error
                continue
            if record.is_complete:
                failure = None
                records.clear()
            if record.configuration:
                schema = record.configuration.schema
            records.append(record)
        if failure:
            raise failure
        return records

    def _apply(self, records: list[Record]) -> list[Document]:
        """Apply records. A request sees either all of the changes in them or none.

        Return the removed and the added documents, or an empty list if the first record is a full record.
        """
        snapshot, whole = self.state.snapshot, records[0].is_complete
        is_large = whole or sum(len(record.entries) for record in records) >= MIN_LARGE_FILES
        removed, added = (
            self.contents.documents_changed_by(records) if not whole else (list[Document](), list[Document]())
        )
        if removed or added:
            snapshot = apply(snapshot, removed, added)
        for record in records:
            self.contents.apply(record)
        configuration = self.contents.configuration
        if whole:
            built = build(configuration.schema, self.contents.documents)
            snapshot = replace(built, number=snapshot.number + 1)
        if is_large:
            for document in added:  # Free memory: no request uses these rows yet.
                document.drop_row()
            self._release_memory_later()
        self._show(snapshot)
        return [*removed, *added]

    def _release_memory_later(self) -> None:
        if self._log is not None:
            later = threading.Timer(RELEASE_DELAY_S, release_free_memory)
            later.daemon = True
            later.start()

    def _show(self, snapshot: Snapshot) -> None:
        configuration, shown = self.contents.configuration, self.state
        if snapshot is not shown.snapshot or configuration.settings != shown.settings:
            shown = State(configuration.settings, configuration.schema, snapshot)
        commit, changed = self.contents.git.committed.commit, bool(self.contents.uncommitted)
        if (commit, changed) != (shown.commit, shown.has_uncommitted_changes):
            shown = replace(shown, commit=commit, has_uncommitted_changes=changed)
        self.state = shown  # one assignment, so that requests read a consistent state
