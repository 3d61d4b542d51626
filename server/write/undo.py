"""Puts back what the files of a write held before it, in every byte, if they are as the write left them."""

from collections.abc import Iterator

from server.documents.document import PUBLISHED, Document
from server.errors import ConflictError
from server.index.uniqueness import find_taken
from server.storage.files import size_signature
from server.storage.undo import KeptWrite, digest
from server.write.context import Context

CHANGED = "These files were changed since, so that nothing was taken back"


def restore(kept: KeptWrite, context: Context) -> tuple[str, ...]:
    """Put the files of a write back; returns their paths, none where they are so already.

    Raises ConflictError where a file is not as the write left it, or what was there would contradict what
    others have written since.
    """
    now = {file.path: _text(context, file.path) for file in kept.files}
    if all(now[file.path] == file.before for file in kept.files):
        return ()
    changed = [file.path for file in kept.files if digest(now[file.path]) != file.after]
    if changed:
        raise ConflictError(f"{CHANGED}: {', '.join(changed[:5])}", {"files": changed})
    for file in kept.files:
        if file.before is None:
            context.changeset.delete(file.path)
        else:
            context.changeset.put(file.path, file.before)
    _refuse_contradictions(kept, context)
    return tuple(now)


def _text(context: Context, path: str) -> str | None:
    return context.changeset.text(path) if context.changeset.exists(path) else None


def _refuse_contradictions(kept: KeptWrite, context: Context) -> None:
    """Raise ConflictError where a document has taken an id or a unique value meanwhile that comes back."""
    paths = {file.path for file in kept.files}
    restored = list(_documents(kept, context))
    keys = {(document.type.uid, document.document_id) for document in restored}
    for document in restored:
        key = (document.type.uid, document.document_id, document.locale, document.status)
        others = [other for other in context.snapshot.claims.get(key, ()) if other.path not in paths]
        if document.status == PUBLISHED:
            table = context.snapshot.tables[document.type.uid]
            taken = find_taken(table, document.type, document.values, document.document_id, document.locale)
            for _, found in taken:
                others += [other for other in found if (other.type.uid, other.document_id) not in keys]
        if others:
            raise ConflictError(f"{others[0].path} has since taken what {document.path} had; change it first")


def _documents(kept: KeptWrite, context: Context) -> Iterator[Document]:
    """The documents that are to be there again."""
    for file in kept.files:
        if file.before is not None:
            data = file.before.encode()
            entry = context.store.entry(file.path, data, size_signature(len(data)))
            if entry and entry.document:
                yield entry.document
