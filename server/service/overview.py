"""Document counts and recently updated documents (docs/querying.md)."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from server.documents.document import Document
from server.index.find import Listing, find
from server.schema.model import title_of
from server.search.find import Scope
from server.service.read import Caller
from server.service.search import api_path, read_number, read_scope
from server.site.site import State

DEFAULT_LIMIT = 12
_NEWEST_FIRST = "updatedAt:desc"


def overview(caller: Caller, params: Mapping[str, Any]) -> tuple[dict[str, Any], Scope]:
    """Return document counts and recently updated documents as JSON, and the scope that was searched.

    Raises ForbiddenError or ValidationError.
    """
    state = caller.state
    scope = read_scope({**params, "locale": ""}, state, caller.actor)
    limit = min(read_number(params, "limit", DEFAULT_LIMIT), state.settings.api.page_size.max)
    listings: dict[str, Listing] = {}
    for type_ in state.schema.content_types:
        status = scope.statuses.get(type_.uid)
        if status is None or (scope.types and type_.uid not in scope.types):
            continue
        reader = caller.reader(type_)
        query_params = {"status": status, "sort": _NEWEST_FIRST, "pagination": {"pageSize": str(limit)}}
        query = reader.query({**query_params, "locale": params.get("locale")}, many=True)
        listings[type_.singular] = find(reader.view(query), query)
    return _body(listings, limit, state), scope


def _body(listings: Mapping[str, Listing], limit: int, state: State) -> dict[str, Any]:
    documents = [_entry(document, state) for listing in listings.values() for document in listing.documents]
    documents.sort(key=itemgetter("updatedAt"), reverse=True)
    counts = {name: listing.total for name, listing in listings.items()}
    return {"data": documents[:limit], "meta": {"counts": counts}}


def _entry(document: Document, state: State) -> dict[str, Any]:
    title = title_of(document.type)
    return {
        "id": document.id,
        "documentId": document.document_id,
        "type": document.type.singular,
        "locale": document.locale,
        "status": document.status,
        "title": document.get(title) if title else None,
        "updatedAt": document.get("updatedAt"),
        "href": api_path(document, document.type, state.settings),
    }
