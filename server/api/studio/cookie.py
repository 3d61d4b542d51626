"""The cookie that contains a session of the studio (docs/studio.md).

The cookie is used only if a page of the same server sends the request, the request has the header
`Bifolio-Studio`, and it has no `Authorization` header.
"""

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from server.api.environ import COOKIE_USED, is_loopback
from server.api.identities import COOKIE_SCHEME
from server.api.response import READ_METHODS, Environ
from server.auth.owner import SESSION_PREFIX as OWNER_PREFIX
from server.errors import ForbiddenError, UnauthorizedError

if TYPE_CHECKING:
    from flask import Request, Response

PATH = "/studio"
HEADER = "HTTP_BIFOLIO_STUDIO"
OTHER_PAGE_MESSAGE = "A request with the studio's cookie must come from a page of the studio"


def authenticate_by_cookie(environ: Environ) -> None:
    """Add an Authorization header with the token from the studio's cookie, if the cookie may be used.

    Raises ForbiddenError if a page of another origin sent the request, and UnauthorizedError if the owner's
    session is used on another machine.
    """
    path = environ["PATH_INFO"]
    if COOKIE_USED not in environ and _scheme(environ) == COOKIE_SCHEME:
        del environ["HTTP_AUTHORIZATION"]  # This scheme is internal, so clients must not use it.
    if HEADER not in environ or "HTTP_AUTHORIZATION" in environ or path.startswith(f"{PATH}/"):
        return
    value = read_cookie(environ)
    if value:
        require_same_origin(environ)
        if value.startswith(OWNER_PREFIX) and not is_at_machine(environ):
            raise UnauthorizedError()
        environ["HTTP_AUTHORIZATION"] = f"{COOKIE_SCHEME} {value}"
        environ[COOKIE_USED] = True


def require_same_origin(environ: Environ) -> None:
    """Raise ForbiddenError if the request was not sent by a page of this server."""
    # Over HTTPS, browsers send `Sec-Fetch-Site`. Otherwise they send `Origin`, at least with writes.
    site, origin = environ.get("HTTP_SEC_FETCH_SITE"), environ.get("HTTP_ORIGIN")
    if site is not None:
        own = site == "same-origin"
    elif origin is not None:
        own = origin.lower().partition("://")[1:] == ("://", host_of(environ))
    else:
        own = environ["REQUEST_METHOD"] in READ_METHODS
    if not own or HEADER not in environ:
        raise ForbiddenError(OTHER_PAGE_MESSAGE)


def is_at_machine(environ: Environ) -> bool:
    try:
        name = urlsplit(f"//{host_of(environ)}").hostname or ""
    except ValueError:  # invalid Host header
        return False
    return is_loopback(environ.get("REMOTE_ADDR", "")) and is_loopback(name)


def host_of(environ: Environ) -> str:
    return str(environ.get("HTTP_HOST", "")).lower()


def read_cookie(environ: Environ) -> str:
    name = _name(environ)
    for part in environ.get("HTTP_COOKIE", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return str(value)
    return ""


def set_cookie(request: "Request", response: "Response", value: str, lifetime_s: float) -> None:
    """Set the studio's cookie, or delete it if the value is empty."""
    secure = request.is_secure or request.headers.get("X-Forwarded-Proto", "") == "https"
    response.set_cookie(
        _name(request.environ),
        value,
        max_age=int(lifetime_s) if value else 0,
        path="/",
        secure=secure,
        httponly=True,
        samesite="Strict",
    )


def _scheme(environ: Environ) -> str:
    return str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")[0]


def _name(environ: Environ) -> str:
    # The name contains the port, because browsers send a host's cookies to all servers on the host.
    port = host_of(environ).rpartition("]")[2].rpartition(":")[2]
    return f"bifolio_studio_{port}" if port.isdigit() else "bifolio_studio"
