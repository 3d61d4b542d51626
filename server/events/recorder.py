"""The event recorder, which logs each change before it becomes visible, while the write lock is held."""

import logging
import mmap
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from server.config.model import Settings
from server.documents.document import Document
from server.documents.timestamps import from_datetime, now
from server.errors import GitError, StorageError
from server.events.change_events import (
    DERIVED_FIELDS,
    UnknownVersion,
    Version,
    Versions,
    digest,
    events_between,
    key_of,
    shapes_of,
    versions_by_key,
)
from server.events.database import BEGIN_NOTE, EventDatabase, LoggedVersion, Transaction
from server.events.lineage import UnloggedChanges
from server.events.model import Counts, Event, Key
from server.events.webhooks.queue import last_before, update_webhooks
from server.paths import SETTINGS
from server.site.change import Origin
from server.site.changed_files import has_changed
from server.site.configure import Configuration, configuration_signatures
from server.site.contents import Contents
from server.site.git_state import apply_git
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.files import mtime_ns
from server.storage.git.times import CommitTimes

log = logging.getLogger("bifolio")

LOCK_TIMEOUT_S = 1.0  # for the database
_MISSED_LOCK_TIMEOUT_S = 0.02  # for the database, after a change was missed
_ID_BYTES = 64
_CHANGES_PER_SWEEP = 500  # Old events are deleted after this many changes.

Before = Callable[[LoggedVersion], Version]  # returns the content of a logged version
After = Callable[[str], Entry | None]  # returns a file's current entry


class Recorder:
    """A site's event recorder. Create it before the workers are forked.

    `previous_documents` are the earlier versions, by path, of documents that changed while no server was
    running.
    """

    def __init__(
        self,
        root: Path,
        previous_documents: Mapping[str, Document] | None = None,
        *,
        accounts_url: str = "",
        is_server: bool = True,
    ) -> None:
        self._served = is_server
        self.database = EventDatabase(root, accounts_url)
        self._replaced = dict(previous_documents or {})
        # In shared memory: whether changes were missed, and the id of the log last compared with the files.
        self._missed, self._compared = mmap.mmap(-1, 1), mmap.mmap(-1, _ID_BYTES)
        self._recorded = 0
        self._settings: Settings | None = None  # whose webhooks the log contains

    def __call__(self, contents: Contents, record: Record, origin: Origin) -> int | None:
        """Log the events for the changes in `record`.

        Returns the number of the last event, or None if the events must be recorded later. Storage errors and
        git errors are written to the server's log, not raised.
        """
        try:
            with self.database.writing(
                _MISSED_LOCK_TIMEOUT_S if self.missed else LOCK_TIMEOUT_S
            ) as transaction:
                log_id = transaction.bounds().id.encode().ljust(_ID_BYTES, b"\0")
                compared = not self.missed and self._compared[:] == log_id
                if not compared:
                    compared = self._compare(transaction, contents)
                self._record(transaction, contents, record, origin)
                last = transaction.bounds().last
        except (StorageError, GitError) as error:
            if not self.missed:
                log.error("%s; changes will be recorded once the event log is available again", error.message)
            self._missed[0] = 1
            return None
        if compared and self.missed:
            log.info("the event log is up to date again")
        self._missed[0] = 0 if compared else 1
        if compared:
            self._compared[:] = log_id
            self._replaced.clear()
        return last

    @property
    def missed(self) -> bool:
        return self._missed[0] != 0

    def committed(self, write: str, commit: str) -> None:
        try:
            with self.database.writing(LOCK_TIMEOUT_S) as transaction:
                transaction.committed(write, commit)
        except StorageError as error:
            log.error("%s", error.message)

    def _compare(self, transaction: Transaction, contents: Contents) -> bool:
        # For a new log, only the versions of the files are stored. Returns False if the configuration has
        # changed since it was read.
        schema, settings = contents.configuration.schema, contents.configuration.settings
        self._settings = None
        if not transaction.read_note(BEGIN_NOTE):
            recorded = map(logged_version, contents.entries.values())
            transaction.put_versions(one for one in recorded if one)
            transaction.put_shapes(shapes_of(schema).items())
            transaction.write_note(BEGIN_NOTE, now())
            self._lineage(transaction, contents, contents.git.committed).record_checkout()
        elif configuration_signatures(contents.root) != contents.configuration.signatures:
            return False
        else:
            self._update_webhooks(transaction, contents.configuration, Origin("file"))
            paths = _differing(transaction.versions(), contents.entries)
            paths = {path for path in paths if self._is_current(contents, path)}
            origin = _Origins(Origin("file"), contents.git.committed, contents.git.committed)
            line = self._lineage(transaction, contents, contents.git.committed)
            events = line.schema_events(schema)
            before = partial(self._before, contents)
            events += _changes(line, paths, before, contents.entries.get, origin)
            self._append(transaction, events, settings)
            line.record_checkout()
        _forget(transaction, settings)
        return True

    def _is_current(self, contents: Contents, path: str) -> bool:
        entry = contents.entries.get(path)
        shown = self._served or entry is None or entry.document is not None
        return shown and not has_changed(contents, path)

    def _record(self, transaction: Transaction, contents: Contents, record: Record, origin: Origin) -> None:
        entries = contents.entries
        configuration = record.configuration or contents.configuration
        self._update_webhooks(transaction, configuration, origin)
        paths = record.entries.keys() | (entries.keys() if record.is_complete else set())

        def after(path: str) -> Entry | None:
            return (
                record.entries.get(path)
                if record.is_complete or path in record.entries
                else entries.get(path)
            )

        committed = contents.git.committed
        later = apply_git(contents.git, record.git).committed if record.git else committed
        line = self._lineage(transaction, contents, later)
        events = line.schema_events(configuration.schema) if record.configuration else []
        before = partial(self._before, contents)
        events += _changes(line, paths, before, after, _Origins(origin, committed, later))
        self._append(transaction, events, configuration.settings)
        line.record_checkout()

    def _update_webhooks(
        self, transaction: Transaction, configuration: Configuration, origin: Origin
    ) -> None:
        # A new webhook receives all events after this point. It is stored here instead of during the next
        # delivery, because site.yaml can be saved again before then.
        if configuration.settings is self._settings:
            return
        mark = configuration.signatures.get(SETTINGS)

        def last_event() -> int:
            if origin.source == "api" or mark is None:
                return transaction.bounds().last
            return last_before(transaction.connection, mtime_ns(mark) / 1e9, time.time())

        # Other machines can have other webhooks. The machine that delivers them deletes those that are gone.
        former = () if transaction.is_shared else None
        update_webhooks(transaction.connection, configuration.settings.webhooks, last_event, former)
        self._settings = configuration.settings

    def _lineage(self, transaction: Transaction, contents: Contents, later: CommitTimes) -> UnloggedChanges:
        origins = _Origins(Origin("file"), contents.git.committed, later)
        return UnloggedChanges(transaction, contents.root, later.commit, origins.is_from_commit)

    def _before(self, contents: Contents, recorded: LoggedVersion) -> Version:
        entry = contents.entries.get(recorded.path)
        if entry and entry.document and logged_version(entry) == recorded:
            return entry.document
        return self._replaced.get(recorded.path, UnknownVersion.VERSION)

    def _append(self, transaction: Transaction, events: list[Event], settings: Settings) -> None:
        if len({(event.uid, event.document_id, event.locale) for event in events}) > settings.events.bulk:
            events = _join_events(events)
        at = now()
        transaction.append(replace(event, at=at) for event in events)
        self._recorded += 1
        if self._recorded % _CHANGES_PER_SWEEP == 0:
            _forget(transaction, settings)


class _Origins:
    def __init__(self, origin: Origin, before: CommitTimes, after: CommitTimes) -> None:
        self._origin, self._before, self._after = origin, before, after
        self._moved = origin.source == "file" and before.commit != after.commit

    def with_origin(self, event: Event, paths: Collection[str]) -> Event:
        event, origin = replace(event, paths=tuple(sorted(paths))), self._origin
        if self._moved and any(map(self.is_from_commit, paths)):
            return replace(event, source="git", commit=self._after.commit)
        return replace(event, source=origin.source, actor=origin.actor, write=origin.write)

    def is_from_commit(self, path: str) -> bool:
        before, after = self._before, self._after
        return path not in after.changed and (path in after.times or path in before.times)


def _differing(rows: Iterable[tuple[Any, ...]], entries: Mapping[str, Entry]) -> set[str]:
    # At startup, almost every row equals its file's version, so rows are compared as plain tuples for speed.
    unmatched, differing = dict(entries), set[str]()
    for row in rows:
        path, mark, uid, document_id, locale, status = row
        entry = unmatched.pop(path, None)
        document = entry.document if entry else None
        same = (
            entry is not None
            and document is not None
            and mark == entry.digest
            and document_id == document.document_id
            and locale == document.locale
            and status == document.status
            and uid == document.type.uid
        )
        if not same and logged_version(entry) != row:
            differing.add(path)
    return differing | {path for path, entry in unmatched.items() if entry.document}


def logged_version(entry: Entry | None) -> LoggedVersion | None:
    """Return the version that the log stores for a file, or None if the file contains no document."""
    if entry is None or entry.document is None:
        return None
    document = entry.document
    return LoggedVersion(entry.path, entry.digest or _digest(document), *key_of(document), document.status)


def _changes(
    line: UnloggedChanges, paths: Collection[str], before: Before, after: After, origins: _Origins
) -> list[Event]:
    versions = {path: logged_version(after(path)) for path in paths}
    paths, transaction = line.find_paths(versions), line.versions
    known = transaction.versions_at(paths)
    differing = {path for path in paths if known.get(path) != versions[path]}
    touched: dict[Key, set[str]] = defaultdict(set)
    for path in differing:
        for one in (known.get(path), versions[path]):
            if one is not None:
                touched[one.key].add(path)
    old_versions = transaction.versions_of(touched.keys())
    unchanged = [one for one in old_versions if one.path not in differing]
    new_versions = sorted([*unchanged, *(one for path in differing if (one := versions[path]))])

    def now_at(logged_version: LoggedVersion) -> Version:
        entry = after(logged_version.path)
        return entry.document if entry else None

    def then_at(logged_version: LoggedVersion) -> Version:
        return before(logged_version) if logged_version.path in differing else now_at(logged_version)

    old = versions_by_key((one.key, one.status, then_at(one)) for one in old_versions)
    new = versions_by_key((one.key, one.status, now_at(one)) for one in new_versions)
    events = [
        origins.with_origin(event, touched[key])
        for key in sorted(touched)
        for event in events_between(key, old.get(key, Versions()), new.get(key, Versions()))
    ]
    gone = [path for path in differing if versions[path] is None]
    transaction.put_versions((one for path in differing if (one := versions[path])), gone)
    return events


def _digest(document: Document) -> bytes:
    # A media file's document is composed from more than one file, so it has no digest of a single file.
    pairs = zip(document.type.attributes, document.values, strict=True)
    values = [value for name, value in pairs if name not in DERIVED_FIELDS]
    return digest(repr(values))


def _join_events(events: Iterable[Event]) -> list[Event]:
    # Hidden events are combined separately. Schema events are never combined.
    schema_events = [event for event in events if event.kind == "schema.update"]
    content_events = [event for event in events if event.kind != "schema.update"]
    groups = ([event for event in content_events if event.hidden is hidden] for hidden in (False, True))
    return [*schema_events, *(_bulk(group) for group in groups if group)]


def _bulk(events: Sequence[Event]) -> Event:
    counted = Counter((event.uid, event.status, event.kind) for event in events)
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for (uid, status, kind), count in sorted(counted.items()):
        counts.setdefault(uid, {}).setdefault(status, {})[kind] = count
    joined: Counts = counts
    origins = {(one.source, one.actor, one.commit, one.write) for one in events}
    source, actor, commit, write = origins.pop() if len(origins) == 1 else ("file", "", "", "")
    bulk = Event("site.update", "", source=source, actor=actor, commit=commit, write=write, counts=joined)
    paths = tuple(sorted({path for event in events for path in event.paths}))
    return replace(bulk, paths=paths, hidden=events[0].hidden)


def _forget(transaction: Transaction, settings: Settings) -> None:
    keep, max_count = settings.events.keep
    before = "" if keep is None else from_datetime(datetime.now(UTC) - keep)
    transaction.forget(before, max_count)
