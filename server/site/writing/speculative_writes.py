"""Chains of prepared writes."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from server.documents.document import Document
from server.errors import ConflictError
from server.index.snapshot import Snapshot, apply
from server.schema.model import Type
from server.site.configure import is_configuration
from server.site.contents import Contents
from server.site.git_state import with_written
from server.storage.changeset import WorkingTree
from server.storage.entry import Entry
from server.storage.files import Signature, size_signature
from server.storage.intent import Write
from server.storage.media import upload_path
from server.storage.store import Store

Recent = Callable[[Type, str, str], Iterable[Document]]


class WriteChain:
    """Prepared writes that have not changed any files yet. This class is not thread-safe.

    Changesets can read files as if these writes had been made.
    """

    def __init__(self, root: Path, base_snapshot: Snapshot) -> None:
        self.base_snapshot, self.snapshot = base_snapshot, base_snapshot
        self.entries: dict[str, Entry | None] = {}
        self._contents: dict[str, tuple[bytes, Signature] | None] = {}  # None for a deleted file
        self._replaced: list[Document] = []
        self._disk = WorkingTree(root)

    def signature(self, path: str) -> Signature | None:
        if path not in self._contents:
            return self._disk.signature(path)
        content = self._contents[path]
        return content[1] if content else None

    def read(self, path: str) -> tuple[bytes, Signature]:
        if path not in self._contents:
            return self._disk.read(path)
        content = self._contents[path]
        if content is None:
            raise FileNotFoundError(path)
        return content

    def is_below_file(self, path: str) -> bool:
        return self._disk.is_below_file(path)

    def list_files(self, folders: Iterable[str]) -> Iterable[str]:
        folders = tuple(folders)
        starts = tuple(f"{folder}/" if folder else "" for folder in folders)
        own = {path for path in self._contents if path.startswith(starts)}
        gone = {path for path in own if self._contents[path] is None}
        return {*self._disk.list_files(folders), *own} - gone

    def changes(self, path: str) -> bool:
        return path in self._contents

    def entries_before(self, entries: Mapping[str, Entry], writes: Iterable[Write]) -> Mapping[str, Entry]:
        found = {write.path: self._before(entries, write) for write in writes}
        return {path: entry for path, entry in found.items() if entry}

    def _before(self, entries: Mapping[str, Entry], write: Write) -> Entry | None:
        return self.entries[write.path] if write.path in self.entries else entries.get(write.path)

    def with_replaced_versions(self, find_recent: Recent) -> Recent:
        """Return a function that finds the versions replaced by this chain first, then older versions."""
        return partial(self._recent, find_recent)

    def _recent(self, recent: Recent, type_: Type, document_id: str, locale: str) -> Iterator[Document]:
        for document in reversed(self._replaced):
            if (document.type.uid, document.document_id, document.locale) == (type_.uid, document_id, locale):
                yield document
        yield from recent(type_, document_id, locale)

    def add(self, contents: Contents, writes: Collection[Write]) -> bool:
        """Append the writes of one commit, and return True.

        If no further write could be prepared after them, return False and leave the chain unchanged.
        """
        store = contents.store
        if contents.links or any(not _is_document(store, write) for write in writes):
            return False
        written = with_written(contents.git, [write.path for write in writes])
        store = store.timed(written.committed.timestamps)
        removed, added = list[Document](), list[Document]()
        for write in writes:
            path, signature = write.path, size_signature(len(write.data or b""), time.time_ns())
            before = self._before(contents.entries, write)
            after = None if write.data is None else store.parse_file(path, write.data, signature)
            removed += [before.document] if before and before.document else []
            added += [after.document] if after and after.document else []
            self.entries[path] = after
            self._contents[path] = None if write.data is None else (write.data, signature)
        self._replaced += removed
        self.snapshot = apply(self.snapshot, removed, added)
        return True


def _is_document(store: Store, write: Write) -> bool:
    path, is_text = write.path, write.source is None
    return is_text and not is_configuration(path) and not upload_path(path) and store.claimed(path)


def rebase_writes(
    root: Path, writes: Iterable[Write], earlier_contents: Mapping[str, bytes | None]
) -> list[Write]:
    """Return the writes, adapted to earlier writes that are now on disk.

    `earlier_contents` maps the paths of the earlier writes to the contents that they wrote. Raises
    ConflictError if one of the files has been changed since then.
    """
    return [
        _rebase(root, write, earlier_contents[write.path]) if write.path in earlier_contents else write
        for write in writes
    ]


def _rebase(root: Path, write: Write, before: bytes | None) -> Write:
    try:
        data, signature = WorkingTree(root).read(write.path)
    except FileNotFoundError:
        if before is None:
            return replace(write, before=None, read=None)
        raise ConflictError(f"{write.path} was removed during this write; try again") from None
    if data != before:
        raise ConflictError(f"{write.path} was changed during this write; try again")
    return replace(write, before=signature, read=data)
