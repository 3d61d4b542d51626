"""Handler for `/access`, which returns the caller's identity and permissions."""

from flask import Response, request

from server.api.request import budgeted_json_response, caller_of, identities_of
from server.api.routes.handlers import Handlers
from server.history.past import PastStates
from server.service.describe_access import describe_access


def bind(handles: Handlers, past: PastStates) -> None:
    @handles("access")
    def access() -> Response:
        identities = identities_of(request)
        data = describe_access(caller_of(request), past, lambda user_id: identities.users.get_cached(user_id))
        return budgeted_json_response(request, {"data": data})
