"""Lists of /history as JSON: the commits of the whole site, and the documents that were deleted."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from server.api.routes.history.document import commit_of
from server.auth.permissions import Actor, may_find, may_read_drafts
from server.documents.document import DRAFT, PUBLISHED
from server.documents.layout import Claim
from server.documents.timestamps import from_seconds
from server.errors import ValidationError
from server.history.deleted import Deleted
from server.history.differences import values_of
from server.history.past import PastStates
from server.history.selection import selection
from server.history.versions import ACTIONS, Timeline, Version
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.schema.model import Type
from server.schema.naming import title_of
from server.storage.git.log import Commit, FileChange
from server.storage.store import Store

MOST_DOCUMENTS = 100  # that one commit names


def wanted_by(params: Mapping[str, Any], past: PastStates) -> Callable[[Commit], bool]:
    """Whether a commit is one of those asked for, by `since` and `author`. Raises ValidationError."""
    since, author = params.get("since"), params.get("author")
    for name, value in (("since", since), ("author", author)):
        if value is not None and not isinstance(value, str):
            raise ValidationError(f"{name} must be one text")
    return selection(past, since or "", author or "")


def documents_of(
    commit: Commit, timeline: Timeline, actor: Actor, params: Mapping[str, Any]
) -> Iterator[dict[str, Any]]:
    """The documents that a commit changed, of those that the actor may find."""
    only = params.get("type")
    for change in commit.changes:
        claim = timeline.claims.get(change.path)
        if claim is None or (only and only not in (claim.type.singular, claim.type.plural)):
            continue
        if may_find(actor, claim.type.uid) and (
            not (claim.draft or claim.type.draft_key) or may_read_drafts(actor, claim.type)
        ):
            yield _document(change, claim)


def _document(change: FileChange, claim: Claim) -> dict[str, Any]:
    return {
        "type": claim.type.singular,
        "documentId": claim.document_id,
        "locale": claim.locale,
        "status": DRAFT if claim.draft else PUBLISHED,
        "action": ACTIONS.get(change.status, "update"),
    }


def of_site(commit: Commit, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """One commit, with the first of the documents that it has changed."""
    return {
        **commit_of(commit, from_seconds(commit.authored)),
        "message": commit.message,
        "documents": documents[:MOST_DOCUMENTS],
        "count": len(documents),
    }


LONGEST_TITLE = 200  # characters


def asks_deleted(params: Mapping[str, Any]) -> bool:
    """Whether the documents are asked for that were deleted. Raises ValidationError."""
    if params.get("deleted") not in (None, "true"):
        raise ValidationError('deleted must be "true"')
    return "deleted" in params


def shown_deleted(
    type_: Type, documents: Sequence[Deleted], store: Store, viewer: Viewer, budget: Budget
) -> list[dict[str, Any]]:
    """Some deleted documents, by what the first of their versions said. Raises LimitError."""
    contents = values_of(store, [versions[0] for _, versions in documents], budget)
    name = title_of(type_)
    told = name if name and viewer.sees(type_.attributes[name]) else ""
    return [
        _shown(document_id, versions, (before or {}).get(told))
        for (document_id, versions), (before, _) in zip(documents, contents, strict=True)
    ]


def _shown(document_id: str, versions: Sequence[Version], title: Any) -> dict[str, Any]:
    last = max((v.commit for v in versions if v.commit), key=lambda commit: commit.committed, default=None)
    commit = last if all(version.commit for version in versions) else None
    return {
        "documentId": document_id,
        "title": title[:LONGEST_TITLE] if isinstance(title, str) else None,
        **commit_of(commit, from_seconds(commit.authored) if commit else None),
        "message": commit.message if commit else None,
        "versions": [{"locale": v.locale, "status": v.status, "at": v.parent} for v in versions],
    }
