"""An error as an answer: the one place that says what a client is told (docs/errors.md)."""

import json
import logging

import orjson
from werkzeug.exceptions import HTTPException

from server.api.response import Answer, Header, adapt
from server.errors import HTTP_NAMES, ApiError, MethodNotAllowedError

log = logging.getLogger("quire")

_TOLD = ("Allow", "Content-Range", "Retry-After")  # headers of werkzeug's errors that clients go by


def failure(error: Exception) -> Answer:
    """The answer to a request that raised an error; one that nobody expected is logged."""
    if isinstance(error, ApiError):
        return _envelope(error.status, error.name, error.message, error.details, _allow(error))
    if isinstance(error, HTTPException):
        return _http_failure(error)
    log.exception("unexpected error", exc_info=error)
    return _envelope(500, ApiError.name, ApiError.default, {})


def _allow(error: ApiError) -> tuple[Header, ...]:
    return (("Allow", ", ".join(error.allowed)),) if isinstance(error, MethodNotAllowedError) else ()


def _http_failure(error: HTTPException) -> Answer:
    """The answer to what werkzeug raises: of routing, of a body that is too large, of a range."""
    status = error.code or 500
    if status < 400:
        return adapt(error.get_response(), {"REQUEST_METHOD": "GET"})
    message = error.name if status != 404 else "Not Found"
    headers = tuple((name, value) for name, value in error.get_headers() if name in _TOLD)
    return _envelope(status, HTTP_NAMES.get(status, "ApplicationError"), message, {}, headers)


def _envelope(
    status: int, name: str, message: str, details: object, headers: tuple[Header, ...] = ()
) -> Answer:
    error = {"status": status, "name": name, "message": message, "details": details}
    body = {"data": None, "error": error}
    try:
        text = orjson.dumps(body)
    except TypeError:  # A value that is quoted has no UTF-8 form.
        text = json.dumps(body).encode()
    return Answer(text, status, headers=headers)
