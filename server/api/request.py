"""Helpers for Flask handlers."""

from collections.abc import Iterable
from typing import cast

from flask import Request, Response, g
from werkzeug.http import parse_list_header

from server.api.commits import COMMIT_HEADER
from server.api.environ import BUDGET, COMMIT, IDENTITIES, STATE, parse_query, response_format_of
from server.api.identities import Identities
from server.api.operations.operation import Operation
from server.api.operations.table import BY_ID, methods_at
from server.api.response import CACHE_TAG, JSON, READ_METHODS
from server.api.serving.bodies import SMALL_BODY_BYTES
from server.auth.permissions import Actor, forbidden
from server.errors import (
    ApiError,
    MethodNotAllowedError,
    NotFoundError,
    PayloadTooLargeError,
    ValidationError,
)
from server.formats.json import count_values, read_json
from server.formats.tree import SyntaxProblem
from server.index.budget import Budget
from server.query import qs
from server.schema.model import header_value
from server.service.read import Caller
from server.service.render import dumps
from server.site.site import State

FORM = "application/x-www-form-urlencoded"
# Request bodies with these media types are parsed as JSON.
JSON_TYPES = frozenset(
    ("application/json", "application/json-patch+json", "application/vnd.api+json", "application/csp-report")
)


def state_of(request: Request) -> State:
    return cast(State, request.environ[STATE])


def requested_commit(request: Request) -> str:
    return request.environ[COMMIT].id if COMMIT in request.environ else ""


def budget_of(request: Request) -> Budget:
    return cast(Budget, request.environ[BUDGET])


def parameters(request: Request) -> dict[str, object]:
    """Return the query parameters. Raises ValidationError if they can't be parsed."""
    return parse_query(request.environ.get("QUERY_STRING", ""))


def prefers(request: Request, name: str) -> bool:
    stated = parse_list_header(request.headers.get("Prefer", ""))
    return any(name == one.partition(";")[0].partition("=")[0].strip().lower() for one in stated)


def operation_of(request: Request) -> Operation:
    """Return the request's operation. Raises KeyError if no operation matched."""
    return BY_ID[request.endpoint or ""]


def allowed_methods(request: Request) -> tuple[str, ...]:
    """Return the methods for the `Allow` header.

    For an unknown path that begins with `/api/`, return only `OPTIONS`. Raises NotFoundError for other
    unknown paths.
    """
    path = request.environ["PATH_INFO"]
    methods = methods_at(path, state_of(request).schema)
    if not methods and not path.startswith("/api/"):
        raise NotFoundError()
    return methods or ("OPTIONS",)


def not_found(request: Request) -> ApiError:
    allowed = allowed_methods(request)
    if request.method in READ_METHODS and ("GET" in allowed or allowed == ("OPTIONS",)):
        return NotFoundError()
    return MethodNotAllowedError(allowed)


def read_body(request: Request) -> object:
    """Parse a request body that is JSON or a form.

    Return None if the body is empty or has another media type. Raises PayloadTooLargeError if it is too
    large, and ValidationError if it can't be parsed.
    """
    most = operation_of(request).max_body or SMALL_BODY_BYTES
    form = request.mimetype == FORM
    if not form and request.mimetype not in JSON_TYPES:
        return None
    if (request.content_length or 0) > most:
        raise PayloadTooLargeError(f"The request body is larger than {most:,} bytes")
    data = request.get_data(cache=False, parse_form_data=False)
    if not data.strip():
        return None
    # Parsing a large body is slow, so large bodies are parsed one at a time.
    if len(data) > SMALL_BODY_BYTES:
        budget_of(request).take_turn()
    try:
        return qs.parse(data.decode()) if form else _read_json(data.decode("utf-8-sig"), request)
    except UnicodeDecodeError as error:
        raise ValidationError(f"The request body is not UTF-8: byte {error.start} is invalid") from error
    except SyntaxProblem as error:
        line = f", line {error.line}" if error.line else ""
        raise ValidationError(f"The request body can't be parsed{line}: {error.message}") from error


def _read_json(text: str, request: Request) -> object:
    budget = budget_of(request)
    budget.take_values(count_values(text, budget.values))
    return read_json(text)


def answer(body: bytes, status: int = 200, cache_control: str = "") -> Response:
    headers = {"Cache-Control": cache_control} if cache_control else None
    return Response(body, status, headers, content_type=JSON)


def budgeted_json_response(request: Request, value: object, cache_control: str = "") -> Response:
    """Return a JSON response. Raises LimitError if it exceeds the request's budget."""
    body = dumps(value)
    budget_of(request).write(len(body))
    return answer(body, cache_control=cache_control)


def with_cache_tags(response: Response, request: Request, tags: Iterable[str]) -> Response:
    if state_of(request).settings.api.cache_tags and not requested_commit(request):
        response.headers[CACHE_TAG] = header_value(tags)
    return response


def identities_of(request: Request) -> Identities:
    return cast(Identities, request.environ[IDENTITIES])


def actor_of(request: Request, *, allow_ended: bool = False) -> Actor:
    credentials, settings = request.headers.get("Authorization", ""), state_of(request).settings
    return identities_of(request).identify(credentials, settings, allow_ended=allow_ended)


def require_permission(request: Request, subject: str, action: str, *, allow_ended: bool = False) -> Actor:
    """Return the request's actor. Raises ForbiddenError if the actor lacks the permission.

    If `allow_ended` is set, accept tokens of sessions that were ended by a password change.
    """
    actor = actor_of(request, allow_ended=allow_ended)
    if not actor.may(subject, action):
        raise forbidden(actor, subject, action, is_type=False)
    return actor


def caller_of(request: Request) -> Caller:
    state, users = state_of(request), identities_of(request).user_index
    actor, response_format = actor_of(request), response_format_of(request.environ, state.settings)
    budget, branch, commit = budget_of(request), g.get("branch"), requested_commit(request)
    return Caller(state, actor, response_format, users, budget, branch, commit)


def add_commit_header(response: Response, commit: str) -> Response:
    if commit:
        response.headers[COMMIT_HEADER] = commit
    return response
