"""Checks before a merge: whether the actor has the permissions, and whether the result is valid."""

from collections.abc import Container, Iterable, Iterator, Mapping

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import PUBLIC, Actor, forbidden, require
from server.documents.document import DRAFT, PUBLISHED, Document
from server.errors import ConflictError, ForbiddenError
from server.history.branching import differing_documents
from server.history.merging.documents import Key, ThreeVersions, version_name
from server.history.merging.sides import FileSides
from server.history.past import PastState
from server.index.snapshot import Snapshot
from server.index.uniqueness import TAKEN_MESSAGE, find_taken_values
from server.storage.media import upload_path
from server.write.context import values_of
from server.write.faults import Fault, error_of
from server.write.validate import check

FULL_ACCESS_MESSAGE = (
    "Merging this branch requires full access, because it changes files other than documents and media"
)


def require_merge(
    actor: Actor, documents: Mapping[Key, ThreeVersions], files: Mapping[str, FileSides]
) -> None:
    """Raise ForbiddenError if the actor lacks a permission that the merge requires.

    Each changed document or media file requires the permission to change it. Changes to other files require
    full access.
    """
    for three in documents.values():
        if three.action:
            require(actor, three.type, three.action)
            drafts = three.some_document.status == DRAFT or _publishes(three, documents)
            if drafts and not may_read_drafts(actor, three.type):
                raise forbidden(actor, three.type.singular, "readDraft")
    for path, file in files.items():
        if file.is_merged or actor.everything:
            continue
        if not upload_path(path):
            raise needs_full_access(actor)
        action = "upload" if file.theirs else "destroy"
        if not actor.may("upload", action):
            raise forbidden(actor, "upload", action, is_type=False)


def needs_full_access(actor: Actor) -> ForbiddenError:
    return ForbiddenError("" if actor.name == PUBLIC else FULL_ACCESS_MESSAGE, actor=actor.name)


def _publishes(three: ThreeVersions, documents: Mapping[Key, ThreeVersions]) -> bool:
    # The branch published the draft.
    document = three.some_document
    draft = documents.get((document.type.uid, document.document_id, document.locale, DRAFT))
    return draft is not None and draft.base is not None and draft.theirs is None


def require_valid(before: PastState, after: PastState, migrated_paths: Container[str] = ()) -> None:
    """Raise ValidationError if a document would be invalid after a merge.

    Documents at `migrated_paths` may keep the faults that they already have. Raises ConflictError if a merged
    file can't be parsed, or if two files would contain the same document.
    """
    changed = dict(differing_documents(after, before))
    unreadable = [
        path
        for path, entry in after.known.entries.items()
        if entry.broken and after.known.blobs.get(path) != before.known.blobs.get(path)
    ]
    if unreadable:
        raise ConflictError(f"{min(unreadable)} can't be parsed after the merge; fix it in the branch first")
    merged = {key: document for key, document in changed.items() if document.path not in migrated_paths}
    faults = [fault for document in merged.values() for fault in faults_of(document, after.state.snapshot)]
    faults.extend(_schema_faults(before, after, set(merged)))
    if faults:
        raise error_of(faults)
    for key in changed:
        same = after.state.snapshot.claims.get(key, ())
        if len(same) > 1:
            raise ConflictError(
                f"After the merge, {same[0].path} and {same[1].path} would contain the same document"
            )


def _schema_faults(before: PastState, after: PastState, changed: set[Key]) -> Iterator[Fault]:
    if before.configuration.parse_key == after.configuration.parse_key:
        return
    old_claims = before.state.snapshot.claims
    for key, documents in after.state.snapshot.claims.items():
        if key in changed or key[0] not in {type_.uid for type_ in after.state.schema.content_types}:
            continue
        old_faults = {(f.path, f.sentence) for old in old_claims.get(key, ()) for f in _check_document(old)}
        for document in documents:
            yield from (
                fault for fault in _check_document(document) if (fault.path, fault.sentence) not in old_faults
            )


def faults_of(document: Document, snapshot: Snapshot, excluded_paths: Iterable[str] = ()) -> Iterator[Fault]:
    """Yield the validation errors of a document.

    Unique attributes are compared with the other documents in `snapshot`, except those in files at
    `excluded_paths`.
    """
    yield from _check_document(document)
    if document.status != PUBLISHED:
        return
    table = snapshot.tables.get(document.type.uid)
    if table is None:
        return
    taken = find_taken_values(table, document.type, document.values, document.document_id, document.locale)
    for path, others in taken:
        if any(other.path not in excluded_paths for other in others):
            yield Fault((_name(document), *path), TAKEN_MESSAGE)


def _check_document(document: Document) -> Iterator[Fault]:
    faults = check(document.type, values_of(document), (), lambda _: True, document.status == DRAFT)
    return (Fault((_name(document), *fault.path), fault.sentence) for fault in faults)


def _name(document: Document) -> str:
    key = (document.type.uid, document.document_id, document.locale, document.status)
    return version_name(key, document.type)


def require_fit(changed: Iterable[Document], snapshot: Snapshot, touched: Iterable[str]) -> None:
    left_out = set(touched)
    faults = [f for document in changed for f in faults_of(document, snapshot, left_out)]
    if faults:
        raise error_of(faults)
