"""JSON error responses (docs/errors.md), and CORS headers."""

import json
import logging
from collections.abc import Mapping
from typing import Any

import orjson

from server.api.response import Answer, Environ, Header
from server.errors import ApiError, ContentCodingError, MethodNotAllowedError

# Longer strings in an error are truncated, because they may quote a large request.
MAX_QUOTED_CHARS = 2000
log = logging.getLogger("bifolio")


def error_answer(error: Exception) -> Answer:
    if isinstance(error, ApiError):
        return envelope(error.status, error.name, error.message, error.details, _headers(error))
    log.exception("a request failed with an unexpected error", exc_info=error)
    return envelope(500, ApiError.name, ApiError.default, {})


def _headers(error: ApiError) -> tuple[Header, ...]:
    if isinstance(error, MethodNotAllowedError):
        return (("Allow", ", ".join(error.allowed)),)
    if isinstance(error, ContentCodingError):
        return (("Accept-Encoding", "identity"),)
    return (("Retry-After", str(error.retry_s)),) if error.retry_s else ()


def envelope(
    status: int, name: str, message: str, details: Mapping[str, Any], headers: tuple[Header, ...] = ()
) -> Answer:
    """Return an error response."""
    shown = {key: _short(value) for key, value in details.items()}
    error = {"status": status, "name": name, "message": _short(message), "details": shown}
    body = {"data": None, "error": error}
    try:
        text = orjson.dumps(body)
    except TypeError:  # The error quotes text that is not valid Unicode.
        text = json.dumps(body).encode()
    return Answer(text, status, headers=headers)


def _short(value: Any) -> Any:
    return (
        f"{value[:MAX_QUOTED_CHARS]}…" if isinstance(value, str) and len(value) > MAX_QUOTED_CHARS else value
    )


# --- cors -----------------------------------------------------------------------------------------

EXPOSED_HEADERS = (
    "Access-Control-Expose-Headers",
    "ETag, Preference-Applied, Bifolio-Commit, Bifolio-Undo, Cache-Tag",
)
ALLOWED_METHODS = ("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
ALWAYS_ALLOWED_HEADERS = ("Content-Type", "Authorization", "Origin", "Accept")
MAX_AGE_HEADER = ("Access-Control-Max-Age", "31536000")  # one year in seconds; browsers apply lower limits
CREDENTIALS = ("Access-Control-Allow-Credentials", "true")
_ANY_ORIGIN: tuple[Header, ...] = (("Access-Control-Allow-Origin", "*"), EXPOSED_HEADERS)


def cors_headers(origins: tuple[str, ...], origin: str) -> tuple[Header, ...]:
    if "*" in origins:
        return _ANY_ORIGIN
    return (
        (("Access-Control-Allow-Origin", origin), CREDENTIALS, EXPOSED_HEADERS) if origin in origins else ()
    )


def cors_vary(origins: tuple[str, ...]) -> tuple[str, ...]:
    return ("Origin",) if origins and "*" not in origins else ()


def preflight_headers(origins: tuple[str, ...], environ: Environ) -> tuple[Header, ...] | None:
    """Return the headers of the response to a CORS preflight request.

    Return None if the request is not a preflight request, or if its origin is not allowed.
    """
    origin, method = environ.get("HTTP_ORIGIN"), environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD")
    if environ["REQUEST_METHOD"] != "OPTIONS" or not origin or not method:
        return None
    if "*" not in origins and origin not in origins:
        return None
    wanted = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS", "")
    return (ALLOWED_METHODS, MAX_AGE_HEADER, ("Access-Control-Allow-Headers", _allowed_headers(wanted)))


def _allowed_headers(requested: str) -> str:
    usual = {name.lower() for name in ALWAYS_ALLOWED_HEADERS}
    others = (name.strip() for name in requested.split(","))
    return ",".join(
        (*ALWAYS_ALLOWED_HEADERS, *(name for name in others if name and name.lower() not in usual))
    )
