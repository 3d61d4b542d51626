"""Data that was read from the files of a site.

If two workers have applied the same records, their data is the same.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from server.documents.document import Document, equal
from server.problems import Problem
from server.site.configure import Configuration, is_configuration
from server.site.git_state import GitState, apply_git, git_change, with_shared_paths
from server.site.record import Record
from server.storage.entry import Entry
from server.storage.images.cache import ImageCache
from server.storage.media import SIDECAR_SUFFIX
from server.storage.store import Store


@dataclass(slots=True)
class Contents:
    """Data that was read from the files at `root`.

    `broken` contains the entries that have an error. `unsettled` files might change again without getting a
    new signature. `uncommitted` files differ from the last commit. `apply_counter` is increased before and
    after each record is applied. `clean_check` contains two numbers from the last check that found no change:
    the value of `apply_counter`, and a digest of all signatures.
    """

    root: Path
    image_cache: ImageCache
    configuration: Configuration
    git: GitState
    store: Store
    entries: dict[str, Entry] = field(default_factory=dict)
    broken: dict[str, Entry] = field(default_factory=dict)
    folder_problems: tuple[Problem, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    unsettled: set[str] = field(default_factory=set)
    uncommitted: set[str] = field(default_factory=set)
    write_counter: int = 0
    last_record: int = 0
    apply_counter: int = 0
    clean_check: tuple[int, int] | None = None

    @classmethod
    def of(
        cls, root: Path, image_cache: ImageCache, configuration: Configuration, git: GitState
    ) -> "Contents":
        return cls(root, image_cache, configuration, git, _store(root, image_cache, configuration, git))

    def documents_changed_by(self, records: Iterable[Record]) -> tuple[list[Document], list[Document]]:
        """Return the documents that the records remove, and those that they add.

        If a document changes, the old version is in the first list and the new version in the second. None of
        the records may be a full record.
        """
        after = {path: entry for record in records for path, entry in record.entries.items()}
        removed, added = [], []
        for path, entry in after.items():
            before = self.entries.get(path)
            old, new = before.document if before else None, entry.document if entry else None
            if old is new or (old and new and equal(old, new)):
                continue
            removed.extend([old] if old else [])
            added.extend([new] if new else [])
        return removed, added

    def apply(self, record: Record) -> None:
        """Apply a record. Unchanged documents remain the same Python objects."""
        seen, self.apply_counter = self._digest_after(record), self.apply_counter + 1
        if record.is_complete:
            self.unsettled, self.git, self.uncommitted = set(), GitState(), set()
        if record.configuration:
            self.configuration = record.configuration
        if record.git:
            self.git = apply_git(self.git, record.git)
        if record.is_complete:
            self.git = with_shared_paths(self.git, record.entries)
        if record.configuration or record.git:
            self.store = _store(self.root, self.image_cache, self.configuration, self.git)
        if record.is_complete:
            self.entries = {path: entry for path, entry in record.entries.items() if entry}
            self.broken = {path: e for path, e in self.entries.items() if e.problems and e.error}
        else:
            for path, entry in record.entries.items():
                self._put(path, entry)
        self._compare_with_commit(record)
        self.unsettled |= record.unsettled
        self.folder_problems, self.links = record.folder_problems, record.links
        self.write_counter, self.last_record = record.write_counter, record.number
        self.apply_counter += 1
        self.clean_check = None if seen is None else (self.apply_counter, seen)

    def _digest_after(self, record: Record) -> int | None:
        # Update the digest, so that not all files have to be compared again after each record.
        if record.is_complete or not self.clean_check or self.clean_check[0] != self.apply_counter:
            return None
        return self.clean_check[1] + sum(
            _hashes(entry) - _hashes(self.entries.get(path)) for path, entry in record.entries.items()
        )

    def _put(self, path: str, entry: Entry | None) -> None:
        self.unsettled.discard(path)
        self.broken.pop(path, None)
        if entry is None:
            self.entries.pop(path, None)
            return
        before = self.entries.get(path)
        if before and before.document and entry.document and equal(before.document, entry.document):
            entry = entry._replace(document=before.document)
        self.entries[path] = entry
        if entry.error:
            self.broken[path] = entry

    def _compare_with_commit(self, record: Record) -> None:
        possible = self._possibly_uncommitted() if record.is_complete else self._affected_paths(record)
        for path in possible | self.configuration.signatures.keys():
            if self._is_uncommitted(path):
                self.uncommitted.add(path)
            else:
                self.uncommitted.discard(path)

    def _possibly_uncommitted(self) -> set[str]:
        # In a large site, set operations are much faster than calling `_is_uncommitted` for each file.
        committed = self.git.committed
        described = {path for path, entry in self.entries.items() if entry.beside}
        return (self.entries.keys() - committed.times.keys()) | committed.changed | described

    def _affected_paths(self, record: Record) -> set[str]:
        change = record.git
        if not change:
            return {*record.entries}
        moved = {*change.times, *change.forgotten, *change.changed, *change.unchanged}
        return {*record.entries} | moved | {path.removesuffix(SIDECAR_SUFFIX) for path in moved}

    def _is_uncommitted(self, path: str) -> bool:
        committed, entry = self.git.committed, self.entries.get(path)
        if not committed.commit:
            return False
        if path in committed.changed:
            return entry is not None or self.store.claimed(path) or is_configuration(path)
        if entry is not None:
            beside = entry.path + SIDECAR_SUFFIX if entry.beside else path
            return path not in committed.times or beside not in committed.times
        return self.configuration.signatures.get(path) is not None and path not in committed.times

    def full_record(self) -> Record:
        return Record(
            self.entries,
            self.configuration,
            git_change(GitState(), self.git),
            self.folder_problems,
            self.links,
            frozenset(self.unsettled),
            self.write_counter,
            is_complete=True,
            number=self.last_record,
        )

    def record_since(self, before: "Contents") -> Record:
        """Return a record of the changes since `before`.

        If many files or the configuration have changed, this is a full record.
        """
        if not before.entries:
            return self.full_record()
        changed = {path: e for path, e in self.entries.items() if before.entries.get(path) is not e}
        gone = dict.fromkeys(before.entries.keys() - self.entries.keys())
        many = (len(changed) + len(gone)) * 8 > len(self.entries)
        if many or self.configuration is not before.configuration:
            return self.full_record()
        return Record(
            {**gone, **changed},
            git=git_change(before.git, self.git),
            folder_problems=self.folder_problems,
            unsettled=frozenset(self.unsettled),
            write_counter=self.write_counter,
        )

    @property
    def documents(self) -> list[Document]:
        return [entry.document for entry in self.entries.values() if entry.document]


def _hashes(entry: Entry | None) -> int:
    # The result must equal the hash in `Walk.hashes`.
    if entry is None:
        return 0
    files = ((entry.path, entry.signature), (entry.path + SIDECAR_SUFFIX, entry.beside))
    return sum(hash((path, signature)) for path, signature in files if signature)


def _store(root: Path, image_cache: ImageCache, configuration: Configuration, git: GitState) -> Store:
    return Store(root, configuration.schema, configuration.settings, git.committed.timestamps, image_cache)
