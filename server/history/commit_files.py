"""Reader of the configuration, documents and media files in a commit."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from typing import IO

from server.documents.document import equal
from server.errors import GitError, NotFoundError, StorageError
from server.site.configure import Configuration, configure, is_configuration
from server.storage.entry import Entry, ImageFacts
from server.storage.files import is_ignored, is_utf_8, size_signature
from server.storage.git.command import is_disk_full_error
from server.storage.git.tree import Blob, copy_blob, read_blobs, require_blob
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.read import MAX_FILE_BYTES
from server.storage.store import Store

BATCH_BYTES = 32_000_000  # limit on the total size of the files in memory at one time

Blobs = Mapping[str, Blob]
Facts = Callable[[str, Blob], ImageFacts]  # parameters: path and blob of a media file


@dataclass(frozen=True, slots=True)
class KnownEntries:
    """Files that were already parsed (entries), and the blobs from which they were parsed, both by path."""

    blobs: Blobs
    entries: Mapping[str, Entry]


def configuration_files(blobs: Blobs) -> dict[str, Blob]:
    return {path: blob for path, blob in blobs.items() if is_configuration(path)}


def read_configuration(root: Path, blobs: Blobs) -> Configuration:
    """Read the site's configuration from the files (`blobs`) of a commit.

    Raises SetupError if the configuration is invalid, StorageError if it can't be copied to a temporary
    folder, or GitError.
    """
    files = {p: blob for p, blob in configuration_files(blobs).items() if _is_content(p)}
    contents = read_blobs(root, [blob.id for blob in files.values()])
    try:
        with tempfile.TemporaryDirectory(prefix="bifolio-") as folder:
            for path, data in zip(files, contents, strict=True):
                copy = Path(folder, path)
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(require_blob(data, path, files[path]))
            return configure(Path(folder))
    except OSError as error:
        raise StorageError(
            f"The site's state at a past commit can't be read: {os.strerror(error.errno or 0)}"
        ) from error


def open_blob(root: Path, blob: Blob) -> IO[bytes]:
    """Copy a blob to an unnamed temporary file, and return the open file.

    Raises NotFoundError if the repository is a partial clone without the blob, or StorageError if the disk is
    full.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(tempfile.TemporaryFile(prefix="bifolio-"))
            if not copy_blob(root, blob.id, file):
                raise NotFoundError()
            file.seek(0)
            stack.pop_all()
            return file
    except OSError as error:
        raise StorageError(f"The file can't be read: {os.strerror(error.errno or 0)}") from error
    except GitError as error:
        if is_disk_full_error(error.message):
            raise StorageError(f"The file can't be read: {os.strerror(ENOSPC)}") from error
        raise


def read_entries(
    store: Store, blobs: Blobs, known: KnownEntries, facts: Facts
) -> tuple[dict[str, Entry], int]:
    """Return the parsed files (entries) of a commit by path, and the number of bytes that had to be parsed.

    Entries in `known` are reused if their files have the same content in this commit.
    """
    entries: dict[str, Entry] = {}
    unread_paths: list[str] = []
    for path in _document_paths(store, blobs):
        reused = _reuse(store, path, blobs, known)
        if reused is None:
            unread_paths.append(path)
        else:
            entries[path] = reused
    size = 0
    for part in _batches(unread_paths, blobs):
        read = read_blobs(store.root, [blobs[path].id for path in part])
        for path, data in zip(part, read, strict=True):
            data = require_blob(data, path, blobs[path])
            entry = store.parse_file(path, data, size_signature(len(data)))
            if entry is not None:
                size += len(data)
                entries[path] = _keep_document(entry, known.entries.get(path))
    for path in [path for path in blobs if upload_path(path) and path not in entries]:
        if _is_content(path) and store.owning_file(path, blobs.__contains__) == path:
            media = _media_entry(store, path, blobs, facts(path, blobs[path]))
            entries[path] = _keep_document(media, known.entries.get(path))
    return entries, size


def _document_paths(store: Store, blobs: Blobs) -> Iterator[str]:
    # A media file that has a description file can be in a bucket instead of in the commit.
    for path, blob in blobs.items():
        if blob.size <= MAX_FILE_BYTES and _is_content(path) and store.claimed(path):
            is_description_only = (
                path.endswith(SIDECAR_SUFFIX) and store.owning_file(path, blobs.__contains__) == path
            )
            if is_description_only or not upload_path(path):
                yield path


def _is_content(path: str) -> bool:
    return is_utf_8(path) and not any(map(is_ignored, path.split("/")))


def _reuse(store: Store, path: str, blobs: Blobs, known: KnownEntries) -> Entry | None:
    # Reused only if parsing the file again would produce the same result.
    entry = known.entries.get(path)
    if entry is None or not entry.digest or known.blobs.get(path) != blobs[path]:
        return None
    if entry.document is None or any(problem.severity == "error" for problem in entry.problems):
        return None  # The document could come from an earlier, valid version of the file.
    return entry if entry.derived in (None, store.derived_timestamps(path, 0)) else None


def _keep_document(entry: Entry, before: Entry | None) -> Entry:
    # Sharing identical documents saves memory.
    old = before.document if before else None
    return entry._replace(document=old) if old and entry.document and equal(old, entry.document) else entry


def _batches(paths: Iterable[str], blobs: Blobs) -> Iterator[list[str]]:
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
    blob, description = blobs[path], blobs.get(path + SIDECAR_SUFFIX)
    if description is None or description.size > MAX_FILE_BYTES:
        return store.media_entry(path, size_signature(blob.size), facts)
    description_data = require_blob(
        next(read_blobs(store.root, [description.id])), path + SIDECAR_SUFFIX, description
    )
    return store.media_entry(
        path, size_signature(blob.size), facts, description_data, size_signature(description.size)
    )
