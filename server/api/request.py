"""What every handler of Flask needs of a request: state, parameters, body; and JSON as a response."""

from typing import cast

from flask import Request, Response

from server.api.environ import BUDGET, COMMIT, STATE, parse_query
from server.api.response import JSON
from server.api.serving.bodies import SMALL
from server.errors import LimitError, PayloadTooLargeError, ValidationError
from server.formats.json.reader import has_more_values, read_json
from server.formats.tree import SyntaxProblem
from server.index.budget import Budget
from server.query import qs
from server.site.site import State

FORM = "application/x-www-form-urlencoded"


def state_of(request: Request) -> State:
    """The one state of a request, taken at the entrance (`server.api.front`)."""
    return cast(State, request.environ[STATE])


def commit_of(request: Request) -> str:
    """The commit that a request is answered from; "" for the current state."""
    return request.environ[COMMIT].id if COMMIT in request.environ else ""


def budget_of(request: Request) -> Budget:
    """What a request may still cost; it begins at the entrance as well."""
    return cast(Budget, request.environ[BUDGET])


def parameters(request: Request) -> dict[str, object]:
    """The query string as nested values. Raises ValidationError."""
    return parse_query(request.environ.get("QUERY_STRING", ""))


def read_body(request: Request, most: int = SMALL) -> object:
    """The body of a request as a tree, from JSON or a form in bracket notation; None where it has neither.

    Raises PayloadTooLargeError for more than `most` bytes, and ValidationError, also for more values than are
    read (`api.limits.values`).
    """
    form = request.mimetype == FORM
    if not form and not request.is_json:
        return None
    if (request.content_length or 0) > most:
        raise PayloadTooLargeError(f"The body has more than {most:,} bytes")
    data = request.get_data(cache=False, parse_form_data=False)
    if not data.strip():
        return None
    if len(data) > SMALL:  # It may take long, and so waits until other costly requests are done.
        budget_of(request).take_turn()
    try:
        return qs.parse(data.decode()) if form else _read_json(data.decode("utf-8-sig"), request)
    except UnicodeDecodeError as error:
        raise ValidationError(f"The body is not UTF-8 at byte {error.start}") from error
    except SyntaxProblem as error:
        line = f", line {error.line}" if error.line else ""
        raise ValidationError(f"The body can't be read{line}: {error.message}") from error


def _read_json(text: str, request: Request) -> object:
    most = state_of(request).settings.limit_values
    if has_more_values(text, most):
        raise LimitError(f"The body has more than {most:,} values; write less at once", "values")
    return read_json(text)


def answer(body: bytes, status: int = 200, cache_control: str = "") -> Response:
    """JSON bytes as a response. `cache_control`: where it is not what `server.api.response` makes it."""
    headers = {"Cache-Control": cache_control} if cache_control else None
    return Response(body, status, headers, content_type=JSON)
