"""CORS: which origins' pages may use the API (https://fetch.spec.whatwg.org/#http-cors-protocol)."""

from server.api.response import Environ, Header

EXPOSED = ("Access-Control-Expose-Headers", "ETag, Preference-Applied, Quire-Commit, Quire-Undo, Cache-Tag")
METHODS = ("Access-Control-Allow-Methods", "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS")
MAX_AGE = ("Access-Control-Max-Age", "31536000")  # seconds; browsers have shorter limits of their own
_ANY: tuple[Header, ...] = (("Access-Control-Allow-Origin", "*"), EXPOSED)


def cors_headers(origins: tuple[str, ...], origin: str) -> tuple[Header, ...]:
    """The headers of any answer to a page of an origin ("" where the request names none)."""
    if "*" in origins:
        return _ANY
    return (("Access-Control-Allow-Origin", origin), EXPOSED) if origin in origins else ()


def cors_vary(origins: tuple[str, ...]) -> tuple[str, ...]:
    """What answers depend on because of these origins."""
    return ("Origin",) if origins and "*" not in origins else ()


def preflight_headers(origins: tuple[str, ...], environ: Environ) -> tuple[Header, ...] | None:
    """What a browser is told that asks whether a request is allowed; None for any other request."""
    origin, method = environ.get("HTTP_ORIGIN"), environ.get("HTTP_ACCESS_CONTROL_REQUEST_METHOD")
    if environ["REQUEST_METHOD"] != "OPTIONS" or not origin or not method:
        return None
    if "*" not in origins and origin not in origins:
        return None
    wanted = environ.get("HTTP_ACCESS_CONTROL_REQUEST_HEADERS")
    return (METHODS, MAX_AGE, *([("Access-Control-Allow-Headers", wanted)] if wanted else []))
