"""Handler for GET /overview (docs/querying.md)."""

from flask import Response, request

from server.api.request import answer, caller_of, parameters, with_cache_tags
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.handlers import Handlers
from server.service.cache_tags import tags_of_types
from server.service.overview import overview
from server.service.render import dumps


def bind(handles: Handlers) -> None:
    """Register the handler."""

    @handles("overview")
    def numbers() -> Response:
        caller = caller_of(request)
        body, scope = overview(caller, parameters(request))
        shown = answer(dumps(body), cache_control=PRIVATE_REVALIDATE)
        return with_cache_tags(shown, request, tags_of_types(scope.statuses, caller.state.schema))
