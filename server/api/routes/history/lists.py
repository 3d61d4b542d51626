"""JSON for lists of commits and deleted documents."""

from collections.abc import Mapping, Sequence
from typing import Any

from server.api.routes.history.document import MessageOf, commit_fields
from server.documents.password_masks import mask_hashes
from server.documents.timestamps import from_seconds
from server.errors import ValidationError
from server.history.differences import values_of
from server.history.titles import MAX_TITLE_CHARS
from server.history.versions import Deleted, Version
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.schema.model import Type, title_of
from server.service.history import CommittedDocument
from server.storage.git.log import Commit
from server.storage.store import Store

MAX_DOCUMENTS = 100  # Maximum for each commit.


def read_commit_filter(params: Mapping[str, Any]) -> dict[str, str]:
    since, author = params.get("since"), params.get("author")
    for name, value in (("since", since), ("author", author)):
        if value is not None and not isinstance(value, str):
            raise ValidationError(f'"{name}" must be a single string')
    return {"since": since or "", "author": author or "", "type_": params.get("type") or ""}


def commit_json(commit: Commit, documents: Sequence[CommittedDocument], message: MessageOf) -> dict[str, Any]:
    return {
        **commit_fields(commit, from_seconds(commit.authored)),
        "message": message(commit),
        "documents": [_document(document) for document in documents[:MAX_DOCUMENTS]],
        "count": len(documents),
    }


def _document(document: CommittedDocument) -> dict[str, Any]:
    return {
        "type": document.type.singular,
        "documentId": document.document_id,
        "locale": document.locale,
        "status": document.status,
        "action": document.action,
    }


def asks_deleted(params: Mapping[str, Any]) -> bool:
    if params.get("deleted") not in (None, "true"):
        raise ValidationError('"deleted" must be "true"')
    return "deleted" in params


def deleted_json(
    type_: Type,
    documents: Sequence[Deleted],
    store: Store,
    viewers: Sequence[Viewer],
    budget: Budget,
    message: MessageOf,
) -> list[dict[str, Any]]:
    """Return the JSON of deleted documents. Raises LimitError if the response is too large.

    `viewers` contains one viewer for each document. It determines whether the document's title is included.
    """
    contents = values_of(store, [versions[0] for _, versions in documents], budget, viewers)
    name = title_of(type_)
    shown = []
    for (document_id, versions), (before, _), viewer in zip(documents, contents, viewers, strict=True):
        sees_title = name is not None and viewer.sees(type_, type_.attributes[name])
        title = mask_hashes((before or {}).get(name or "")) if sees_title else None
        shown.append(_shown(document_id, versions, title, message))
    return shown


def _shown(document_id: str, versions: Sequence[Version], title: Any, message: MessageOf) -> dict[str, Any]:
    last = max((v.commit for v in versions if v.commit), key=lambda commit: commit.committed, default=None)
    commit = last if all(version.commit for version in versions) else None
    return {
        "documentId": document_id,
        "title": title[:MAX_TITLE_CHARS] if isinstance(title, str) else None,
        **commit_fields(commit, from_seconds(commit.authored) if commit else None),
        "message": message(commit) if commit else None,
        "versions": [{"locale": v.locale, "status": v.status, "at": v.parent} for v in versions],
    }
