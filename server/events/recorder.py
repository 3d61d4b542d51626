"""Records what each change of a site did: called with it under the site's write lock, before it is shown.

The database says which versions of documents its events lead up to. So what changed while nothing was
recorded (the server was down, or the disk was full) has its events when this is called next, and a change
that two servers of a site find has its events once.
"""

import logging
import mmap
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
    Unknown,
    Version,
    Versions,
    digest,
    events_between,
    key_of,
    shapes_of,
    versions_by_key,
)
from server.events.database import BEGIN_NOTE, EventDatabase, Recorded, Transaction
from server.events.lineage import Lineage
from server.events.model import Counts, Event, Key
from server.site.change import Origin
from server.site.changed_files import has_changed
from server.site.configure import configuration_mark
from server.site.contents import Contents
from server.site.git_state import apply_git
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.git.times import CommitTimes

log = logging.getLogger("bifolio")

LOCK_TIMEOUT_S = 1.0  # How long a change of content waits for the database if the last one was recorded.
_MISSED_LOCK_TIMEOUT_S = 0.02  # If it was not.
_ID_BYTES = 64
_CHANGES_PER_SWEEP = 500  # After so many changes, old events are removed.

Before = Callable[[Recorded], Version]  # what a file held when a version of it was recorded
After = Callable[[str], Entry | None]  # the entry of a file now


class Recorder:
    """Records the events of the site at `root`. It is made before workers are forked, and is theirs together.

    The log is where the `accounts` are, if that is PostgreSQL.
    `replaced` has the documents that changed before it was made, as they had been, by path. Where the site is
    not `served`, nothing is said of a broken file: a server shows the version that it held before.
    """

    def __init__(
        self,
        root: Path,
        replaced: Mapping[str, Document] | None = None,
        *,
        accounts: str = "",
        served: bool = True,
    ) -> None:
        self._served = served
        self.database = EventDatabase(root, accounts)
        self._replaced = dict(replaced or {})
        # In memory that all workers share: whether changes were not recorded, and the id of the log whose
        # versions were compared with the files.
        self._missed, self._compared = mmap.mmap(-1, 1), mmap.mmap(-1, _ID_BYTES)
        self._recorded = 0

    def __call__(self, contents: Contents, record: Record, origin: Origin) -> int | None:
        """Record what a record changes in some contents. It never fails: what it misses, it records later.

        Returns the number of the last event, None where it missed some.
        """
        try:
            with self.database.writing(
                _MISSED_LOCK_TIMEOUT_S if self.missed else LOCK_TIMEOUT_S
            ) as transaction:
                log_id = transaction.bounds().id.encode().ljust(_ID_BYTES, b"\0")
                compared = not self.missed and self._compared[:] == log_id
                if not compared:
                    compared = self._compare(transaction, contents)
                self._take(transaction, contents, record, origin)
                last = transaction.bounds().last
        except (StorageError, GitError) as error:
            if not self.missed:
                log.error("%s; what changes is recorded once it can be used again", error.message)
            self._missed[0] = 1
            return None
        if compared and self.missed:
            log.info("the log of events has all changes again")
        self._missed[0] = 0 if compared else 1
        if compared:
            self._compared[:] = log_id
            self._replaced.clear()
        return last

    @property
    def missed(self) -> bool:
        """Whether there are changes that could not be recorded yet."""
        return self._missed[0] != 0

    def committed(self, write: str, commit: str) -> None:
        """Name the commit that a write is in."""
        try:
            with self.database.writing(LOCK_TIMEOUT_S) as transaction:
                transaction.committed(write, commit)
        except StorageError as error:
            log.error("%s", error.message)

    def _compare(self, transaction: Transaction, contents: Contents) -> bool:
        """Record what has changed since versions were last recorded; at first, note what there is.

        Files that are no longer as they were read are left out: another server may have recorded what they
        say now, and whoever reads them next records it else. Returns whether the settings and content types
        are as they were read: otherwise nothing is compared.
        """
        schema, settings = contents.configuration.schema, contents.configuration.settings
        if not transaction.value(BEGIN_NOTE):
            recorded = map(recorded_version, contents.entries.values())
            transaction.put_versions(one for one in recorded if one)
            transaction.put_shapes(shapes_of(schema).items())
            transaction.note(BEGIN_NOTE, now())
            self._line(transaction, contents, contents.git.committed).arrive()
        elif configuration_mark(contents.root) != contents.configuration.mark:
            return False
        else:
            paths = _differing(transaction.versions(), contents.entries)
            paths = {path for path in paths if self._tells(contents, path)}
            origin = _OriginOf(Origin("file"), contents.git.committed, contents.git.committed)
            line = self._line(transaction, contents, contents.git.committed)
            events = line.of_schema(schema)
            before = partial(self._before, contents)
            events += _changes(line, paths, before, contents.entries.get, origin)
            self._append(transaction, events, settings)
            line.arrive()
        _forget(transaction, settings)
        return True

    def _tells(self, contents: Contents, path: str) -> bool:
        """Whether contents tell what is shown of a file."""
        entry = contents.entries.get(path)
        shown = self._served or entry is None or entry.document is not None
        return shown and not has_changed(contents, path)

    def _take(self, transaction: Transaction, contents: Contents, record: Record, origin: Origin) -> None:
        entries = contents.entries
        configuration = record.configuration or contents.configuration
        paths = record.entries.keys() | (entries.keys() if record.whole else set())

        def after(path: str) -> Entry | None:
            return record.entries.get(path) if record.whole or path in record.entries else entries.get(path)

        committed = contents.git.committed
        later = apply_git(contents.git, record.git).committed if record.git else committed
        line = self._line(transaction, contents, later)
        events = line.of_schema(configuration.schema) if record.configuration else []
        before = partial(self._before, contents)
        events += _changes(line, paths, before, after, _OriginOf(origin, committed, later))
        self._append(transaction, events, configuration.settings)
        line.arrive()

    def _line(self, transaction: Transaction, contents: Contents, later: CommitTimes) -> Lineage:
        """What is to be recorded, where what git says is what `later` has."""
        origins = _OriginOf(Origin("file"), contents.git.committed, later)
        return Lineage(transaction, contents.root, later.commit, origins.is_from_commit)

    def _before(self, contents: Contents, recorded: Recorded) -> Version:
        """What a file held when a version of it was recorded, where that is known."""
        entry = contents.entries.get(recorded.path)
        if entry and entry.document and recorded_version(entry) == recorded:
            return entry.document
        return self._replaced.get(recorded.path, Unknown.VERSION)

    def _append(self, transaction: Transaction, events: list[Event], settings: Settings) -> None:
        if len({(event.uid, event.document_id, event.locale) for event in events}) > settings.events.bulk:
            events = _join_events(events)
        at = now()
        transaction.append(replace(event, at=at) for event in events)
        self._recorded += 1
        if self._recorded % _CHANGES_PER_SWEEP == 0:
            _forget(transaction, settings)


class _OriginOf:
    """Where the changes of one record come from, by the files that changed."""

    def __init__(self, origin: Origin, before: CommitTimes, after: CommitTimes) -> None:
        self._origin, self._before, self._after = origin, before, after
        self._moved = origin.source == "file" and before.commit != after.commit

    def of(self, event: Event, paths: Collection[str]) -> Event:
        """An event of what changed in some files, with its origin."""
        event, origin = replace(event, paths=tuple(sorted(paths))), self._origin
        if self._moved and any(map(self.is_from_commit, paths)):
            return replace(event, source="git", commit=self._after.commit)
        return replace(event, source=origin.source, actor=origin.actor, write=origin.write)

    def is_from_commit(self, path: str) -> bool:
        """Whether a file is as the commit has it that was checked out or made."""
        before, after = self._before, self._after
        return path not in after.changed and (path in after.times or path in before.times)


def _differing(rows: Iterable[tuple[Any, ...]], entries: Mapping[str, Entry]) -> set[str]:
    """The paths of the files that do not hold the versions that are recorded, of all.

    The rows are no objects: after a start, there is one for each file, and nearly all are as they were.
    """
    left, differing = dict(entries), set[str]()
    for row in rows:
        path, mark, uid, document_id, locale, status = row
        entry = left.pop(path, None)
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
        if not same and recorded_version(entry) != row:
            differing.add(path)
    return differing | {path for path, entry in left.items() if entry.document}


def recorded_version(entry: Entry | None) -> Recorded | None:
    """The version that a file holds, as it is recorded."""
    if entry is None or entry.document is None:
        return None
    document = entry.document
    return Recorded(entry.path, entry.digest or _digest(document), *key_of(document), document.status)


def _changes(
    line: Lineage, paths: Collection[str], before: Before, after: After, origins: _OriginOf
) -> list[Event]:
    """The events of what changed in some files, whose versions are recorded then."""
    found = {path: recorded_version(after(path)) for path in paths}
    paths, transaction = line.differing(found), line.versions
    known = transaction.versions_at(paths)
    differing = {path for path in paths if known.get(path) != found[path]}
    touched: dict[Key, set[str]] = defaultdict(set)
    for path in differing:
        for one in (known.get(path), found[path]):
            if one is not None:
                touched[one.key].add(path)
    then = transaction.versions_of(touched.keys())
    unchanged = [one for one in then if one.path not in differing]
    now_ = sorted([*unchanged, *(one for path in differing if (one := found[path]))])

    def now_at(one: Recorded) -> Version:
        entry = after(one.path)
        return entry.document if entry else None

    def then_at(one: Recorded) -> Version:
        return before(one) if one.path in differing else now_at(one)

    old = versions_by_key((one.key, one.status, then_at(one)) for one in then)
    new = versions_by_key((one.key, one.status, now_at(one)) for one in now_)
    events = [
        origins.of(event, touched[key])
        for key in sorted(touched)
        for event in events_between(key, old.get(key, Versions()), new.get(key, Versions()))
    ]
    gone = [path for path in differing if found[path] is None]
    transaction.put_versions((one for path in differing if (one := found[path])), gone)
    return events


def _digest(document: Document) -> bytes:
    """What a document says that is not read from one file alone, as a media file's."""
    pairs = zip(document.type.attributes, document.values, strict=True)
    values = [value for name, value in pairs if name not in DERIVED_FIELDS]
    return digest(repr(values))


def _join_events(events: Iterable[Event]) -> list[Event]:
    """Events of documents and media as one, those that are hidden as another; those of the schema stay."""
    alone = [event for event in events if event.kind == "schema.update"]
    others = [event for event in events if event.kind != "schema.update"]
    groups = ([event for event in others if event.hidden is hidden] for hidden in (False, True))
    return [*alone, *(_bulk(group) for group in groups if group)]


def _bulk(events: Sequence[Event]) -> Event:
    """One event that stands for many."""
    counted = Counter((event.uid, event.status, event.kind) for event in events)
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for (uid, status, kind), count in sorted(counted.items()):
        counts.setdefault(uid, {}).setdefault(status, {})[kind] = count
    told: Counts = counts
    origins = {(one.source, one.actor, one.commit, one.write) for one in events}
    source, actor, commit, write = origins.pop() if len(origins) == 1 else ("file", "", "", "")
    bulk = Event("site.update", "", source=source, actor=actor, commit=commit, write=write, counts=told)
    paths = tuple(sorted({path for event in events for path in event.paths}))
    return replace(bulk, paths=paths, hidden=events[0].hidden)


def _forget(transaction: Transaction, settings: Settings) -> None:
    keep, most = settings.events.keep
    before = "" if keep is None else from_datetime(datetime.now(UTC) - keep)
    transaction.forget(before, most)
