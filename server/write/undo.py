"""Undoes a write by restoring its files, unless they have been changed again since."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from server.documents.document import PUBLISHED, Document
from server.errors import ConflictError
from server.index.snapshot import Snapshot
from server.index.uniqueness import find_taken
from server.schema.model import Type
from server.storage.entry import Entry
from server.storage.files import size_signature
from server.storage.store import Store
from server.storage.undo import KeptWrite, digest
from server.write.broken_files import describe
from server.write.context import Context

CHANGED_MESSAGE = "Nothing was undone, because these files were changed later"
CHANGED_HIDDEN_MESSAGE = (
    "Nothing was undone, because files that you are not allowed to see were changed later"
)
TAKEN_MESSAGE = (
    "Nothing was undone, because a different document now has an id or unique value that would be restored"
)
BROKEN_MESSAGE = "Nothing was undone, because a file had an error before the change"
MAX_NAMED_FILES = 5  # maximum number of files that a message lists

Place = tuple[str, str]  # locale and status of a version
Text = str | None  # a file's text, or None if there is no file


@dataclass(frozen=True, slots=True)
class UndoneDocument:
    """A document that an undo affects.
    `now` and `then` contain the locale and status of each version before and after the undo.
    """

    type: Type
    document_id: str
    now: frozenset[Place]
    then: frozenset[Place]


@dataclass(frozen=True, slots=True)
class Restoration:
    """A request to undo a write.

    - `permit`: raises ForbiddenError if the actor is not allowed to change the documents.
    - `may_see`: returns whether the actor is allowed to see a file.
    """

    kept: KeptWrite
    permit: Callable[[Sequence[UndoneDocument]], None]
    may_see: Callable[[str], bool]


def restore(restoration: Restoration, context: Context) -> tuple[str, ...]:
    """Restore the files that a write changed. Return their paths, or () if nothing had to be restored.
    Raises ForbiddenError, or ConflictError if the write conflicts with later writes.
    """
    kept = restoration.kept
    now = {file.path: _text(context, file.path) for file in kept.files}
    if all(now[file.path] == file.before for file in kept.files):
        return ()
    texts = [(file.path, file.before, now[file.path]) for file in kept.files]
    restoration.permit(undone_documents(texts, context.snapshot, context.store))
    changed = [file.path for file in kept.files if digest(now[file.path]) != file.after]
    if changed:
        raise _changed_since([path for path in changed if restoration.may_see(path)], len(changed))
    for file in kept.files:
        if file.before is None:
            context.changeset.delete(file.path)
        else:
            context.changeset.put(file.path, file.before)
    _refuse_broken(restoration, context)
    _refuse_contradictions(restoration, context)
    return tuple(now)


def undone_documents(
    texts: Iterable[tuple[str, Text, Text]], snapshot: Snapshot, store: Store
) -> list[UndoneDocument]:
    """Return the documents that an undo affects. Each item of `texts` is (path, old text, current text)."""
    types: dict[tuple[str, str], Type] = {}
    then: dict[tuple[str, str], set[Place]] = {}
    paths: set[str] = set()
    for path, before, now in texts:
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


def _refuse_broken(restoration: Restoration, context: Context) -> None:
    # A restored file could have an error, for example if the write had corrected an invalid value.
    for file in restoration.kept.files:
        entry = _entry(file.path, file.before, context.store) if file.before is not None else None
        problem = entry.error if entry else None
        if problem and not restoration.may_see(file.path):
            raise ConflictError(BROKEN_MESSAGE)
        if problem:
            where = f"{file.path}, line {problem.line}" if problem.line else file.path
            raise ConflictError(f"{BROKEN_MESSAGE}: {where}: {describe(problem, context.layout)}")


def _refuse_contradictions(restoration: Restoration, context: Context) -> None:
    paths = {file.path for file in restoration.kept.files}
    restored = list(_documents(restoration.kept, context.store))
    keys = {(document.type.uid, document.document_id) for document in restored}
    for document in restored:
        key = (document.type.uid, document.document_id, document.locale, document.status)
        others = [other for other in context.snapshot.claims.get(key, ()) if other.path not in paths]
        if document.status == PUBLISHED:
            table = context.snapshot.tables[document.type.uid]
            conflicts = find_taken(
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


def _documents(kept: KeptWrite, store: Store) -> Iterator[Document]:
    for file in kept.files:
        if file.before is not None:
            document = _document(file.path, file.before, store)
            if document:
                yield document


def _document(path: str, text: str, store: Store) -> Document | None:
    entry = _entry(path, text, store)
    return entry.document if entry else None


def _entry(path: str, text: str, store: Store) -> Entry | None:
    data = text.encode()
    return store.entry(path, data, size_signature(len(data)))
