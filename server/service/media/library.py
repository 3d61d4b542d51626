"""The media library: its folders, and the documents that use its files (docs/writing.md, "Media library")."""

from collections import Counter
from collections.abc import Callable, Mapping
from posixpath import dirname
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor, may_find
from server.documents.document import DRAFT, Document
from server.errors import ValidationError
from server.index.find import Listing, find
from server.index.media_usage import Place, places_in, without_copies
from server.query.ast import Query
from server.query.qs import read_boolean
from server.schema.model import title_of
from server.service.media.uploads import find_file, view_of
from server.service.read import Caller
from server.storage.media import media_key

MAX_USES = 100  # maximum number of documents in one response
UNUSED = "unused"  # query parameter
Condition = Callable[[Document], bool]


def find_in_library(caller: Caller, query: Query, params: Mapping[str, Any]) -> Listing:
    """Return a page of media files that match the query and the parameters `folder` and `unused`.

    Raises ValidationError.
    """
    conditions = [test for test in (_in_folder(params), _is_unused(caller, params)) if test is not None]
    if not conditions:
        return find(view_of(caller), query)
    return find(view_of(caller), query, lambda file: all(test(file) for test in conditions))


def list_folders(caller: Caller) -> dict[str, Any]:
    """Return all folders with the number of files in each. Files in subfolders are not counted."""
    media = caller.state.snapshot.media
    caller.budget.spend(len(media))
    counts = Counter(dirname(key) for key in media)
    for folder in list(counts):
        while folder := dirname(folder):
            counts.setdefault(folder, 0)
    counts.setdefault("", 0)
    return {"data": [{"path": path, "files": counts[path]} for path in sorted(counts)]}


def list_uses(caller: Caller, key: str) -> dict[str, Any]:
    """Return the documents that use a file, without those that the caller may not see.

    `hidden` is True if hidden documents use the file, too, or None if the caller may not delete files. Raises
    NotFoundError.
    """
    file = find_file(caller.state, key)
    media = media_key(file.path) or ""
    documents = without_copies(caller.state.snapshot.media_uses.get(media, ()))
    caller.budget.spend(len(documents))
    uses = [(document, _visible_uses(caller.actor, document, media)) for document in documents]
    visible = [(document, places) for document, places in uses if places]
    may_delete = caller.actor.may("upload", "destroy")
    return {
        "data": [_use(document, places) for document, places in visible[:MAX_USES]],
        "meta": {"total": len(visible), "hidden": len(uses) > len(visible) if may_delete else None},
    }


def _use(document: Document, places: list[Place]) -> dict[str, Any]:
    title = title_of(document.type)
    return {
        "type": document.type.singular,
        "documentId": document.document_id,
        "locale": document.locale,
        "status": document.status,
        "title": document.get(title) if title else None,
        "attributes": sorted({".".join(attribute.name for attribute in place) for place in places}),
    }


def _visible_uses(actor: Actor, document: Document, key: str) -> list[Place]:
    if not may_find(actor, document.type.uid):
        return []
    if document.status == DRAFT and not may_read_drafts(actor, document.type):
        return []
    return [place for place in places_in(document, key) if all(a.visible for a in place)]


def _in_folder(params: Mapping[str, Any]) -> Condition | None:
    folder = params.get("folder")
    if folder is None:
        return None
    if not isinstance(folder, str):
        raise ValidationError("Invalid folder: expected one path", {"source": "query", "param": "folder"})
    path = folder.strip("/")
    return lambda file: dirname(media_key(file.path) or "") == path


def _is_unused(caller: Caller, params: Mapping[str, Any]) -> Condition | None:
    if UNUSED not in params:
        return None
    wanted = read_boolean(params[UNUSED])
    if wanted is None:
        message = 'Invalid unused: expected "true" or "false"'
        raise ValidationError(message, {"source": "query", "param": UNUSED})
    uses = caller.state.snapshot.media_uses
    return lambda file: ((media_key(file.path) or "") not in uses) == wanted
