"""GET /overview: the numbers of documents by type, and those changed last (docs/querying.md)."""

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from flask import Response, request

from server.api.request import actor_of, answer, budget_of, identities_of, parameters, state_of, tagged
from server.api.response import CALLER
from server.api.routes.handlers import Handlers
from server.api.routes.search import href_of, number_of, read_scope
from server.documents.document import Document
from server.index.find import Listing, find
from server.schema.model import title_of
from server.service.cache_tags import tags_of_types
from server.service.read import Reader
from server.service.render import dumps
from server.site.site import State

DEFAULT_LIMIT = 12
_NEWEST_FIRST = "updatedAt:desc"


def bind(handles: Handlers) -> None:
    """Bind the operation of `/overview`."""

    @handles("overview")
    def overview() -> Response:
        state, actor, params = state_of(request), actor_of(request), parameters(request)
        scope = read_scope({**params, "locale": ""}, state, actor)
        limit = min(number_of(params, "limit", DEFAULT_LIMIT), state.settings.api.page_size.max)
        listings: dict[str, Listing] = {}
        for type_ in state.schema.content_types:
            status = scope.statuses.get(type_.uid)
            if status is None or (scope.types and type_.uid not in scope.types):
                continue
            reader = Reader(
                state, type_, actor, users=identities_of(request).user_index, budget=budget_of(request)
            )
            wanted = {"status": status, "sort": _NEWEST_FIRST, "pagination": {"pageSize": str(limit)}}
            query = reader.query({**wanted, "locale": params.get("locale")}, many=True)
            listings[type_.singular] = find(reader.view(query), query)
        shown = answer(dumps(_body(listings, limit, state)), cache_control=CALLER)
        return tagged(shown, request, tags_of_types(scope.statuses, state.schema))


def _body(listings: Mapping[str, Listing], limit: int, state: State) -> dict[str, Any]:
    """Return the counts of the types, and of all their documents those that were changed last."""
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
        "href": href_of(document, document.type, state.settings),
    }
