"""The deleted documents of a type as JSON: what each was called, who deleted it, where it last was."""

from collections.abc import Mapping, Sequence
from typing import Any

from server.api.routes.history.document import commit_of
from server.documents.timestamps import from_seconds
from server.errors import ValidationError
from server.history.deleted import Deleted
from server.history.differences import values_of
from server.history.versions import Version
from server.history.viewer import Viewer
from server.index.budget import Budget
from server.schema.model import Type
from server.schema.naming import title_of
from server.storage.store import Store

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
