"""The files of a commit as a site would read them from a checkout: its configuration and its entries."""

import os
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from errno import ENOSPC
from itertools import islice
from pathlib import Path
from typing import IO

from server.documents.document import equal
from server.documents.path_rules import Layout
from server.errors import GitError, NotFoundError, StorageError
from server.index.dangling import Key
from server.schema.model import Schema
from server.site.configure import Configuration, configure, is_configuration
from server.site.site import Site, State
from server.storage.entry import Entry, ImageFacts
from server.storage.files import ignored, is_utf_8, size_signature
from server.storage.git.command import is_full
from server.storage.git.log import CommitLog
from server.storage.git.tree import Blob, copy_blob, read_blobs, required
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.read import MAX_FILE_BYTES
from server.storage.store import Store
from server.write.renaming.renames import MAX_COMMITS, Rename, find_renames

BATCH_BYTES = 32_000_000  # Bytes of files that are read into memory at a time.

Blobs = Mapping[str, Blob]
Facts = Callable[[str, Blob], ImageFacts]  # of the media file at a path, which holds a blob


@dataclass(frozen=True, slots=True)
class KnownEntries:
    """Entries that are known already, by path, each of a file with some blob."""

    blobs: Blobs
    entries: Mapping[str, Entry]


def configuration_files(blobs: Blobs) -> dict[str, Blob]:
    """The files that configure a site, among all of a commit."""
    return {path: blob for path, blob in blobs.items() if is_configuration(path)}


def read_configuration(root: Path, blobs: Blobs) -> Configuration:
    """The configuration of a commit, read from a copy of its few files.

    Raises SetupError where it is broken, StorageError for a full disk, and GitError.
    """
    files = {p: blob for p, blob in configuration_files(blobs).items() if _is_content(p)}
    contents = read_blobs(root, [blob.id for blob in files.values()])
    try:
        with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
            for path, data in zip(files, contents, strict=True):
                copy = Path(folder, path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(required(data, path, files[path]))
            return configure(Path(folder))
    except OSError as error:
        raise StorageError(f"A past state can't be read: {os.strerror(error.errno or 0)}") from error


def open_blob(root: Path, blob: Blob) -> IO[bytes]:
    """Open a file without a name that holds what is in a blob.

    Raises NotFoundError where the clone does not have it, StorageError where the disk is full.
    """
    try:
        with ExitStack() as opened:
            file = opened.enter_context(tempfile.TemporaryFile(prefix="bifolio-"))
            if not copy_blob(root, blob.id, file):
                raise NotFoundError()
            file.seek(0)
            opened.pop_all()
            return file
    except OSError as error:
        raise StorageError(f"The file can't be read: {os.strerror(error.errno or 0)}") from error
    except GitError as error:
        if is_full(error.message):
            raise StorageError(f"The file can't be read: {os.strerror(ENOSPC)}") from error
        raise


def read_entries(
    store: Store, blobs: Blobs, known: KnownEntries, facts: Facts
) -> tuple[dict[str, Entry], int]:
    """Read the entries of a commit's files; return them, and how many bytes were read.

    Those that are known of the same file under the same timestamps are taken over.
    """
    entries: dict[str, Entry] = {}
    left: list[str] = []
    for path in _paths(store, blobs):
        found = _reuse(store, path, blobs, known)
        if found is None:
            left.append(path)
        else:
            entries[path] = found
    size = 0
    for part in _parts(left, blobs):
        read = read_blobs(store.root, [blobs[path].id for path in part])
        for path, data in zip(part, read, strict=True):
            data = required(data, path, blobs[path])
            entry = store.entry(path, data, size_signature(len(data)))
            if entry is not None:
                size += len(data)
                entries[path] = _keep_document(entry, known.entries.get(path))
    for path in [path for path in blobs if upload_path(path) and path not in entries]:
        if _is_content(path) and store.owner(path, blobs.__contains__) == path:
            media = _media_entry(store, path, blobs, facts(path, blobs[path]))
            entries[path] = _keep_document(media, known.entries.get(path))
    return entries, size


def _paths(store: Store, blobs: Blobs) -> Iterator[str]:
    """The documents among the files of a commit, and the descriptions of media that may be in a bucket."""
    for path, blob in blobs.items():
        if blob.size <= MAX_FILE_BYTES and _is_content(path) and store.claimed(path):
            alone = path.endswith(SIDECAR_SUFFIX) and store.owner(path, blobs.__contains__) == path
            if alone or not upload_path(path):
                yield path


def _is_content(path: str) -> bool:
    return is_utf_8(path) and not any(map(ignored, path.split("/")))


def _reuse(store: Store, path: str, blobs: Blobs, known: KnownEntries) -> Entry | None:
    """What is known of a file, if that is what it would be read as now."""
    entry = known.entries.get(path)
    if entry is None or not entry.digest or known.blobs.get(path) != blobs[path]:
        return None
    if entry.document is None or any(problem.severity == "error" for problem in entry.problems):
        return None  # It may have the document of an earlier version, which was sound.
    return entry if entry.derived in (None, store.derived_timestamps(path, 0)) else None


def _keep_document(entry: Entry, before: Entry | None) -> Entry:
    """An entry with the document that is known already, where that says the same."""
    old = before.document if before else None
    return replace(entry, document=old) if old and entry.document and equal(old, entry.document) else entry


def _parts(paths: Iterable[str], blobs: Blobs) -> Iterator[list[str]]:
    """The paths in parts that are small enough to be in memory together."""
    part: list[str] = []
    size = 0
    for path in paths:
        if part and size + blobs[path].size > BATCH_BYTES:
            yield part
            part, size = [], 0
        part.append(path)
        size += blobs[path].size
    if part:
        yield part


def _media_entry(store: Store, path: str, blobs: Blobs, facts: ImageFacts) -> Entry:
    blob, beside = blobs[path], blobs.get(path + SIDECAR_SUFFIX)
    if beside is None or beside.size > MAX_FILE_BYTES:
        return store.media_entry(path, size_signature(blob.size), facts)
    described = required(next(read_blobs(store.root, [beside.id])), path + SIDECAR_SUFFIX, beside)
    return store.media_entry(path, size_signature(blob.size), facts, described, size_signature(beside.size))


# --- renames --------------------------------------------------------------------------------------

Asked = tuple[str, Schema, tuple[str, ...], str]  # a commit, and what says whose document a path is


class Renames:
    """The renames in the commits of a site that is served. Safe to use from many threads."""

    def __init__(self, site: Site, log: CommitLog) -> None:
        self.site, self.log = site, log
        self._known: tuple[Asked | None, Mapping[Key, Rename]] = None, {}
        self._lock = threading.Lock()

    def are_known(self, state: State) -> bool:
        """Whether they can be told without asking git, as in a site without commits."""
        return not self.site.git.committed.commit or self._known[0] == self._question(state)

    def of(self, state: State) -> Mapping[Key, Rename]:
        """The renames up to the last commit that the site has seen."""
        with self._lock:
            commit, *_ = asked = self._question(state)
            if not commit:
                return {}
            if self._known[0] != asked:
                self.log.update(commit)
                commits = islice(self.log.before(commit), MAX_COMMITS)
                layout = Layout(state.schema, state.settings)
                self._known = asked, find_renames(((one.id, one.changes) for one in commits), layout)
            return self._known[1]

    def _question(self, state: State) -> Asked:
        settings = state.settings
        return (
            self.site.git.committed.commit,
            state.schema,
            settings.locales.available,
            settings.locales.default,
        )
