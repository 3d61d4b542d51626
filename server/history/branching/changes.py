"""What a branch has changed since it left the branch that is served: the documents that differ."""

from collections.abc import Iterator
from dataclasses import dataclass

from server.auth.permissions import Actor, may_find, may_read_drafts
from server.documents.document import DRAFT, Document
from server.errors import ConflictError
from server.history.differences import Difference, Values, differences
from server.history.past import PastState, PastStates
from server.history.viewer import Viewer
from server.schema.model import Type
from server.storage.git.branches import merge_base
from server.storage.git.refs import head_commit

Key = tuple[str, str, str, str]  # the uid of the type, documentId, locale and status


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One version of a document that differs: what was done to it, and its attributes before and after."""

    type: Type
    document_id: str
    locale: str
    status: str
    action: str
    attributes: dict[str, Difference]


def fork_of(past: PastStates, commit: str) -> str:
    """The last commit that a branch and what is checked out have in common. Raises ConflictError."""
    found = merge_base(past.site.root, head_commit(past.site.root), commit)
    if not found:
        raise ConflictError("The branch has no commit in common with what is checked out")
    return found


def changed_documents(before: PastState, after: PastState, actor: Actor) -> list[DocumentChange]:
    """The documents that differ between two states, of those that the actor may find; by type and id."""
    viewer = Viewer(actor, after.state)
    old, new = dict(differing(before, after)), dict(differing(after, before))
    found = (_change(old.get(key), new.get(key), viewer) for key in sorted({*old, *new}))
    return [change for change in found if change]


def differing(state: PastState, other: PastState) -> Iterator[tuple[Key, Document]]:
    """The documents of a state whose files are not the same in another one."""
    uids = {type_.uid for type_ in state.state.schema.content_types}
    for path, entry in state.known.entries.items():
        document = entry.document
        if document is None or state.known.blobs.get(path) == other.known.blobs.get(path):
            continue
        if document.type.uid in uids:
            yield (document.type.uid, document.document_id, document.locale, document.status), document


def _change(before: Document | None, after: Document | None, viewer: Viewer) -> DocumentChange | None:
    """How a document differs, as somebody may see it; None where there is nothing that they may see."""
    one, actor = after or before, viewer.actor
    if one is None or not may_find(actor, one.type.uid):
        return None
    if one.status == DRAFT and not may_read_drafts(actor, one.type):
        return None
    found = differences(viewer.attributes(one.type), _values(before), _values(after), viewer)
    if before and after and not found:
        return None
    action = "update" if before and after else "create" if after else "delete"
    return DocumentChange(one.type, one.document_id, one.locale, one.status, action, found)


def _values(document: Document | None) -> Values | None:
    return dict(zip(document.type.attributes, document.values, strict=True)) if document else None
