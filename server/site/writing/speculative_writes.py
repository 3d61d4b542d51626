"""What a site comes to by writes of which none is made yet: each is prepared on what those before come to."""

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


class Chain:
    """Writes that are prepared, and not made. Used by one thread at a time; `Files` of a changeset."""

    def __init__(self, root: Path, begun: Snapshot) -> None:
        """`begun` is what is shown, on which the first is prepared."""
        self.begun, self.snapshot = begun, begun
        self.entries: dict[str, Entry | None] = {}
        self._held: dict[str, tuple[bytes, Signature] | None] = {}  # None for a file that is to be gone
        self._replaced: list[Document] = []
        self._disk = WorkingTree(root)

    def signature(self, path: str) -> Signature | None:
        """See `server.storage.changeset.Files`."""
        if path not in self._held:
            return self._disk.signature(path)
        held = self._held[path]
        return held[1] if held else None

    def read(self, path: str) -> tuple[bytes, Signature]:
        """See `server.storage.changeset.Files`."""
        if path not in self._held:
            return self._disk.read(path)
        held = self._held[path]
        if held is None:
            raise FileNotFoundError(path)
        return held

    def is_below_file(self, path: str) -> bool:
        """See `server.storage.changeset.Files`."""
        return self._disk.is_below_file(path)

    def changes(self, path: str) -> bool:
        """Whether one of the writes changes a file."""
        return path in self._held

    def over(self, entries: Mapping[str, Entry], writes: Iterable[Write]) -> Mapping[str, Entry]:
        """The entries that the files of some writes have before these, of those of the site."""
        found = {write.path: self._before(entries, write) for write in writes}
        return {path: entry for path, entry in found.items() if entry}

    def _before(self, entries: Mapping[str, Entry], write: Write) -> Entry | None:
        return self.entries[write.path] if write.path in self.entries else entries.get(write.path)

    def recent(self, recent: Recent) -> Recent:
        """The versions that there were before a further write, as `Context.recent` gives them."""
        return partial(self._recent, recent)

    def _recent(self, recent: Recent, type_: Type, document_id: str, locale: str) -> Iterator[Document]:
        for document in reversed(self._replaced):
            if (document.type.uid, document.document_id, document.locale) == (type_.uid, document_id, locale):
                yield document
        yield from recent(type_, document_id, locale)

    def add(self, contents: Contents, writes: Collection[Write]) -> bool:
        """Add a write; False where no other can be prepared on it: it has media, schemas or links in it."""
        store = contents.store
        if contents.links or any(not _is_document(store, write) for write in writes):
            return False
        written = with_written(contents.git, [write.path for write in writes])
        store = store.timed(written.committed.timestamps)
        removed, added = list[Document](), list[Document]()
        for write in writes:
            path, found = write.path, size_signature(len(write.data or b""), time.time_ns())
            before = self._before(contents.entries, write)
            after = None if write.data is None else store.entry(path, write.data, found)
            removed += [before.document] if before and before.document else []
            added += [after.document] if after and after.document else []
            self.entries[path] = after
            self._held[path] = None if write.data is None else (write.data, found)
        self._replaced += removed
        self.snapshot = apply(self.snapshot, removed, added)
        return True


def _is_document(store: Store, write: Write) -> bool:
    path, is_text = write.path, write.source is None
    return is_text and not is_configuration(path) and not upload_path(path) and store.claimed(path)


def as_written(root: Path, writes: Iterable[Write], written: Mapping[str, bytes | None]) -> list[Write]:
    """Writes that were prepared on others, as they are once those are made, which have `written` files.

    Raises ConflictError where a file is not as it was written.
    """
    return [_on(root, write, written[write.path]) if write.path in written else write for write in writes]


def _on(root: Path, write: Write, before: bytes | None) -> Write:
    try:
        data, found = WorkingTree(root).read(write.path)
    except FileNotFoundError:
        if before is None:
            return replace(write, before=None, read=None)
        raise ConflictError(f"{write.path} was removed meanwhile; try again") from None
    if data != before:
        raise ConflictError(f"{write.path} was changed meanwhile; try again")
    return replace(write, before=found, read=data)
