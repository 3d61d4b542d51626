"""Handler for POST /mcp (docs/agents.md)."""

import json
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from flask import Response, request

from server.api.environ import ENTRANCE
from server.api.error_response import error_answer
from server.api.request import actor_of, state_of
from server.api.response import JSON
from server.api.routes.event_stream import stream
from server.api.routes.handlers import Handlers
from server.api.serving.bodies import SMALL_BODY_BYTES
from server.errors import ApiError, NotFoundError, PayloadTooLargeError, UnauthorizedError
from server.events.database import EventDatabase

OFF_MESSAGE = "Agents are turned off; to let them connect, set mcp: {enabled: true} in site.yaml"

INVALID_REQUEST = -32600  # the code of a JSON-RPC error
NO_TOKEN_MESSAGE = (
    "The header Authorization contains no token: send Authorization: Bearer bifolio_…, or leave the header "
    "out to be the role public"
)
INVALID_TOKEN_MESSAGE = (
    "The header Authorization does not contain a valid token of this site; "
    "`bifolio token list` lists the tokens"
)


def bind(handles: Handlers, database: EventDatabase) -> None:
    """Register the handler."""

    @handles("mcp")
    def answer() -> Response:
        try:
            return answer_message()
        except ApiError as error:
            return _json_rpc_error(error)

    def answer_message() -> Response:
        settings, environ = state_of(request).settings, request.environ
        if not settings.mcp.enabled:
            raise NotFoundError(OFF_MESSAGE)
        _require_credentials(environ)
        length = request.content_length or 0
        # The HTTP server drops bodies that are larger than the caller's permissions allow.
        if length > SMALL_BODY_BYTES and length > (most := environ[ENTRANCE].max_body_bytes(environ)):
            raise PayloadTooLargeError(f"The request body is larger than {most:,} bytes")
        data = request.get_data(cache=False, parse_form_data=False)
        # Imported here, because most sites have no agents.
        mcp_http = import_module("server.api.mcp.http")
        status, body = mcp_http.handle_post(environ[ENTRANCE], environ, data, settings)
        if not isinstance(body, bytes):
            return stream(request, database, actor_of(request), body.selection, frames=body)
        return Response(body, status, content_type=JSON if body else None)


def _json_rpc_error(error: ApiError) -> Response:
    """Return an error of the REST API as a JSON-RPC error, because MCP clients do not show other errors."""
    shown = error_answer(error)
    assert isinstance(shown.body, bytes)
    body = {"jsonrpc": "2.0", "id": None, **json.loads(shown.body)}
    body["error"]["code"] = INVALID_REQUEST
    return Response(json.dumps(body), shown.status, dict(shown.headers), content_type=JSON)


def _require_credentials(environ: Mapping[str, Any]) -> None:
    """Raise UnauthorizedError if there is an Authorization header, but it contains no valid token.

    Without this error, an agent might not notice that it has only the permissions of the public.
    """
    header = environ.get("HTTP_AUTHORIZATION")
    if header is not None and not header.partition(" ")[2].strip():
        raise UnauthorizedError(NO_TOKEN_MESSAGE)
    try:
        actor_of(request)
    except UnauthorizedError as error:
        message = INVALID_TOKEN_MESSAGE if error.message == UnauthorizedError.default else error.message
        raise UnauthorizedError(message) from error
