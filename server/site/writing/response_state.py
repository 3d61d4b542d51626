"""The state from which the response to a write is rendered."""

import time
from collections.abc import Iterable
from dataclasses import replace

from server.documents.document import Document
from server.index.fragments import Fragments
from server.index.snapshot import Snapshot, apply
from server.site.contents import Contents
from server.site.replica import State
from server.storage.files import digest_of, size_signature
from server.storage.intent import Write


def with_written_documents(state: State, contents: Contents, writes: Iterable[Write]) -> State:
    """Return the state with the documents as written, even if their files have since changed again."""
    added = list(_overwritten(contents, writes))
    if not added:
        return state
    removed = [served for document in added for served in _served(state.snapshot, document)]
    # The cache is not shared, because these documents are not served.
    snapshot = replace(state.snapshot, fragments=Fragments())
    return replace(state, snapshot=apply(snapshot, removed, added))


def _overwritten(contents: Contents, writes: Iterable[Write]) -> Iterable[Document]:
    for write in writes:
        data, entry = write.data, contents.entries.get(write.path)
        if data is None or (entry and entry.digest == digest_of(data)):
            continue
        if contents.store.layout.claim(write.path):
            read = contents.store.parse_file(write.path, data, size_signature(len(data), time.time_ns()))
            if read and read.document:
                yield read.document


def _served(snapshot: Snapshot, document: Document) -> Iterable[Document]:
    key = (document.type.uid, document.document_id, document.locale, document.status)
    return (other for other in snapshot.claims.get(key, ()) if other.path == document.path)
