"""The state from which the response to a write is rendered."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from server.documents.document import Document
from server.index.fragments import Fragments
from server.index.snapshot import Snapshot, apply
from server.site.contents import Contents
from server.site.replica import State
from server.storage.entry import NO_FACTS, Entry
from server.storage.files import Signature, digest_of, size_signature
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX, media_key, upload_path
from server.storage.store import Store


def with_written_documents(
    served: State, written: State, contents: Contents, writes: Collection[Write]
) -> State:
    """Return the served state with the documents and media files as written.

    Their files may have changed or disappeared since the write. `written` is a state around the time of the
    write. It replaces `served` if the schema or the locales have changed since then, because the written
    files can belong to another content type or locale in `served`, or to none.
    """
    store, known = contents.store, contents.entries
    if not all(_reads_like(written, each) for each in (served, store)):
        served, known = written, {}
        store = Store(contents.root, written.schema, written.settings, contents.git.committed.timestamps)
    added = [*_overwritten(store, known, writes), *_missing_media(store, served, written, writes)]
    if not added:
        return served
    removed = [other for document in added for other in _served(served.snapshot, document)]
    # The cache is not shared, because these documents are not served.
    snapshot = replace(served.snapshot, fragments=Fragments())
    return replace(served, snapshot=apply(snapshot, removed, added))


def _reads_like(written: State, other: State | Store) -> bool:
    return written.schema is other.schema and written.settings.locales == other.settings.locales


def _overwritten(store: Store, known: Mapping[str, Entry], writes: Iterable[Write]) -> Iterator[Document]:
    for write in writes:
        data, entry = write.data, known.get(write.path)
        if data is None or (entry and entry.digest == digest_of(data)):
            continue
        if store.layout.claim(write.path):
            read = store.parse_file(write.path, data, _new_signature(len(data)))
            if read and read.document:
                yield read.document


def _missing_media(
    store: Store, served: State, written: State, writes: Collection[Write]
) -> Iterator[Document]:
    descriptions = {write.path: write.data for write in writes if write.data is not None}
    sizes = {write.path: write.source_size for write in writes if write.source is not None}
    for path in dict.fromkeys((*sizes, *(path.removesuffix(SIDECAR_SUFFIX) for path in descriptions))):
        key = media_key(path) if upload_path(path) else None
        if key is None or key in served.snapshot.media:
            continue
        if known := written.snapshot.media.get(key):
            yield known
            continue
        # The file disappeared before it could be read, so the width and height of an image are unknown.
        sidecar, described = path + SIDECAR_SUFFIX, descriptions.get(path + SIDECAR_SUFFIX, b"")
        beside, signature = _new_signature(len(described)), _new_signature(sizes.get(path, 0))
        read = store.parse_file(sidecar, described, beside)  # None unless the file is in a bucket.
        read = read or store.media_entry(path, signature, NO_FACTS, described, beside)
        if read.document:
            yield read.document


def _served(snapshot: Snapshot, document: Document) -> Iterable[Document]:
    key = (document.type.uid, document.document_id, document.locale, document.status)
    return (other for other in snapshot.claims.get(key, ()) if other.path == document.path)


def _new_signature(size: int) -> Signature:
    return size_signature(size, time.time_ns())
