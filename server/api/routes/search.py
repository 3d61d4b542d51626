"""Handler for GET /search (docs/search.md)."""

from flask import Response, request

from server.api.request import answer, caller_of, parameters, with_cache_tags
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.search.find import Search
from server.service.cache_tags import tags_of_types
from server.service.render import dumps
from server.service.search import search
from server.site.site import Site


def bind(handles: Handlers, site: Site) -> None:
    """Register the handler."""
    engine = Search(site.root)

    @handles("search")
    def found() -> Response:
        caller = caller_of(request)
        body, scope = search(engine, caller, parameters(request))
        shown = answer(dumps(body), cache_control=PRIVATE_REVALIDATE)
        return with_cache_tags(shown, request, tags_of_types(scope.statuses, caller.state.schema))
