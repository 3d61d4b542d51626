"""The history of the whole site as JSON: the commits, and the documents that each has changed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from server.api.routes.history.document import commit_of
from server.auth.permissions import Actor, may_find, may_read_drafts
from server.documents.document import DRAFT, PUBLISHED
from server.documents.layout import Claim
from server.documents.timestamps import from_seconds
from server.errors import ValidationError
from server.history.past import PastStates
from server.history.selection import selection
from server.history.versions import ACTIONS, Timeline
from server.storage.git.log import Commit, FileChange

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
