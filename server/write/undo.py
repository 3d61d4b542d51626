"""Undo of a write by restoring the files that it changed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from server.documents.document import PUBLISHED, Document
from server.documents.path_rules import Layout
from server.errors import ConflictError
from server.index.snapshot import Snapshot
from server.index.uniqueness import find_taken_values
from server.schema.model import Type
from server.storage.entry import Entry
from server.storage.files import size_signature
from server.storage.media import SIDECAR_SUFFIX, upload_path
from server.storage.store import Store
from server.storage.undo import NO_FILE_DIGEST, UndoableFile, UndoableWrite, digest, digest_of_file, is_media
from server.write.broken_files import describe
from server.write.context import Context

CHANGED_MESSAGE = "Nothing was undone, because these files were changed later"
CHANGED_HIDDEN_MESSAGE = (
    "Nothing was undone, because files that you are not allowed to see were changed later"
)
TAKEN_MESSAGE = (
    "Nothing was undone, because a different document now has an id or unique value that would be restored"
)
CLAIMED_MESSAGE = (
    "Nothing was undone, because content types have changed, and files would become other documents"
)
BROKEN_MESSAGE = "Nothing was undone, because a file had an error before the change"
MAX_NAMED_FILES = 5  # maximum number of files that a message lists

Place = tuple[str, str]  # locale and status of a version
Text = str | None  # a file's text, or None if there is no file


@dataclass(frozen=True, slots=True)
class UndoneDocument:
    """A document that an undo affects, with the locales and statuses of its versions before and after."""

    type: Type
    document_id: str
    versions_before: frozenset[Place]
    versions_after: frozenset[Place]


@dataclass(frozen=True, slots=True)
class UndoRequest:
    """A request to undo a write.

    `copy_of` returns the path of a saved copy of a media file's old content. `permit` raises ForbiddenError
    if the actor may not change the documents.
    """

    write: UndoableWrite
    copy_of: Callable[[UndoableFile], Path]
    permit: Callable[[Sequence[UndoneDocument]], None]
    may_see: Callable[[str], bool]


def restore(request: UndoRequest, context: Context) -> tuple[str, ...]:
    """Restore the files that a write has changed.

    Return their paths, or () if they already have their old content. Raises ForbiddenError if the actor may
    not change the documents, or ConflictError if later changes conflict with the undo.
    """
    paths = restore_unchecked(request, context)
    if paths:
        require_same_claims(request, context.layout)
        _refuse_broken(request, context)
        _refuse_contradictions(request, context)
    return paths


def restore_unchecked(request: UndoRequest, context: Context) -> tuple[str, ...]:
    """Restore files like `restore`, but do not check whether the restored documents are valid."""
    kept = request.write
    media = {file.path for file in kept.files if is_media(file.path)}
    now = {file.path: _text(context, file.path) for file in kept.files if file.path not in media}
    digests = {path: digest(text) for path, text in now.items()}
    digests |= {path: _digest_of_media(context, path) for path in media}
    before = {file.path: _digest_before(request, file) for file in kept.files}
    if digests == before:
        return ()
    texts = [(file.path, file.before, now[file.path]) for file in kept.files if file.path not in media]
    request.permit(undone_documents(texts, context.snapshot, context.store))
    changed = [file.path for file in kept.files if digests[file.path] != file.after]
    if changed:
        raise _changed_since([path for path in changed if request.may_see(path)], len(changed))
    for file in kept.files:
        if file.copy:
            context.changeset.put_file(file.path, request.copy_of(file))
        elif file.before is None:
            context.changeset.delete(file.path)
        else:
            context.changeset.put(file.path, file.before)
    return tuple(file.path for file in kept.files)


def require_same_claims(request: UndoRequest, layout: Layout) -> None:
    """Raise ConflictError if a restored file would no longer belong to the same document version.

    `layout` contains the path rules after the undo.
    """
    changed = [
        file.path
        for file in request.write.files
        if file.before is not None and file.claim not in (None, describe_claim(layout, file.path))
    ]
    if changed:
        shown = [path for path in changed if request.may_see(path)]
        named = ", ".join(shown[:MAX_NAMED_FILES]) or "files that you are not allowed to see"
        raise ConflictError(f"{CLAIMED_MESSAGE}: {named}", {"files": shown})


def describe_claim(layout: Layout, path: str) -> str:
    claim = layout.claim(path)
    return "" if claim is None else repr(claim.identity)


def _digest_of_media(context: Context, path: str) -> str:
    return digest_of_file(context.changeset.root / path) if context.changeset.exists(path) else NO_FILE_DIGEST


def _digest_before(restoration: UndoRequest, file: UndoableFile) -> str:
    return digest_of_file(restoration.copy_of(file)) if file.copy else digest(file.before)


def undone_documents(
    texts: Iterable[tuple[str, Text, Text]], snapshot: Snapshot, store: Store
) -> list[UndoneDocument]:
    """Return the documents that an undo affects. `texts` contains (path, old text, current text) for each
    file.
    """
    types: dict[tuple[str, str], Type] = {}
    then: dict[tuple[str, str], set[Place]] = {}
    paths: set[str] = set()
    for path, before, now in texts:
        if upload_path(path):
            continue  # Permissions for media files do not depend on the file.
        paths.add(path)
        for text in (before, now):
            document = _document(path, text, store) if text is not None else None
            if document is None or document.type.uid not in snapshot.tables:
                continue
            key = (document.type.uid, document.document_id)
            types[key] = document.type
            places = then.setdefault(key, set())
            if text is before:
                places.add((document.locale, document.status))
    return [
        _undone(snapshot, type_, document_id, then[uid, document_id], paths)
        for (uid, document_id), type_ in types.items()
    ]


def _undone(
    snapshot: Snapshot, type_: Type, document_id: str, restored: set[Place], paths: set[str]
) -> UndoneDocument:
    now, remaining = set(), set()
    for place in snapshot.tables[type_.uid].order:
        claims = snapshot.claims.get((type_.uid, document_id, *place), ())
        if claims:
            now.add(place)
        if any(other.path not in paths for other in claims):
            remaining.add(place)
    return UndoneDocument(type_, document_id, frozenset(now), frozenset(remaining | restored))


def _changed_since(named: Sequence[str], count: int) -> ConflictError:
    if not named:
        return ConflictError(CHANGED_HIDDEN_MESSAGE, {"files": []})
    others = ", and files that you are not allowed to see" if len(named) < count else ""
    return ConflictError(
        f"{CHANGED_MESSAGE}: {', '.join(named[:MAX_NAMED_FILES])}{others}", {"files": list(named)}
    )


def _text(context: Context, path: str) -> Text:
    return context.changeset.text(path) if context.changeset.exists(path) else None


def _refuse_broken(restoration: UndoRequest, context: Context) -> None:
    # A restored file could have an error, for example if the write had corrected an invalid value.
    for file in restoration.write.files:
        entry = _entry(file.path, file.before, context.store) if file.before is not None else None
        problem = entry.error if entry else None
        if problem and not restoration.may_see(file.path):
            raise ConflictError(BROKEN_MESSAGE)
        if problem:
            where = f"{file.path}, line {problem.line}" if problem.line else file.path
            raise ConflictError(f"{BROKEN_MESSAGE}: {where}: {describe(problem, context.layout)}")


def _refuse_contradictions(restoration: UndoRequest, context: Context) -> None:
    paths = {file.path for file in restoration.write.files}
    # In the snapshot, a media file in a bucket has its own path, not the path of its description file.
    paths |= {path.removesuffix(SIDECAR_SUFFIX) for path in paths if upload_path(path)}
    restored = list(_documents(restoration.write, context.store))
    keys = {(document.type.uid, document.document_id) for document in restored}
    for document in restored:
        key = (document.type.uid, document.document_id, document.locale, document.status)
        others = [other for other in context.snapshot.claims.get(key, ()) if other.path not in paths]
        if document.status == PUBLISHED:
            table = context.snapshot.tables[document.type.uid]
            conflicts = find_taken_values(
                table, document.type, document.values, document.document_id, document.locale
            )
            for _, found in conflicts:
                others += [other for other in found if (other.type.uid, other.document_id) not in keys]
        if others:
            other = others[0].path
            if not (restoration.may_see(other) and restoration.may_see(document.path)):
                raise ConflictError(TAKEN_MESSAGE)
            raise ConflictError(
                f"{other} now contains an id or unique value that was in {document.path}; change it first"
            )


def _documents(undoable_write: UndoableWrite, store: Store) -> Iterator[Document]:
    for file in undoable_write.files:
        if file.before is not None:
            document = _document(file.path, file.before, store)
            if document:
                yield document


def _document(path: str, text: str, store: Store) -> Document | None:
    entry = _entry(path, text, store)
    return entry.document if entry else None


def _entry(path: str, text: str, store: Store) -> Entry | None:
    data = text.encode()
    return store.parse_file(path, data, size_signature(len(data)))
