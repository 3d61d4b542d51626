"""The studio's session cookie.

Browsers may also send this cookie with requests from pages of other sites. The cookie therefore authenticates
a request only if all of these conditions are met (docs/studio.md):

- The request has the header `Bifolio-Studio`. A page with a different origin can send this header together
  with the cookie only if `api.cors` lists the page's origin.
- According to the browser, the request comes from a page with the server's own origin. This excludes all
  other origins, including those in `api.cors`.
- The request has no `Authorization` header. If it has this header, the header identifies the caller instead.

Otherwise, the cookie does not authenticate the request.
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


def use_cookie(environ: Environ) -> None:
    """If a request comes from the studio, let the cookie authenticate it.

    Raises ForbiddenError if the request comes from a page with a different origin. Raises UnauthorizedError
    if the cookie contains the owner's session and the request comes from another machine.
    """
    path = environ["PATH_INFO"]
    if COOKIE_USED not in environ and _scheme(environ) == COOKIE_SCHEME:
        del environ["HTTP_AUTHORIZATION"]  # This scheme is internal, so clients must not use it.
    if HEADER not in environ or "HTTP_AUTHORIZATION" in environ or path.startswith(f"{PATH}/"):
        return
    value = read_cookie(environ)
    if value:
        require_own_page(environ)
        if value.startswith(OWNER_PREFIX) and not is_at_machine(environ):
            raise UnauthorizedError()
        environ["HTTP_AUTHORIZATION"] = f"{COOKIE_SCHEME} {value}"
        environ[COOKIE_USED] = True


def require_own_page(environ: Environ) -> None:
    """Raise ForbiddenError unless the request comes from a page with the server's own origin.

    If the connection is secure, browsers specify the origin with `Sec-Fetch-Site`. Otherwise they send
    `Origin`, at least with writes.
    """
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
    """Whether a request comes from the machine on which the server runs, and the host in its URL is a
    loopback host name or address.
    """
    try:
        name = urlsplit(f"//{host_of(environ)}").hostname or ""
    except ValueError:  # This happens if the Host header is invalid.
        return False
    return is_loopback(environ.get("REMOTE_ADDR", "")) and is_loopback(name)


def host_of(environ: Environ) -> str:
    """Return the host and port in the request's URL."""
    return str(environ.get("HTTP_HOST", "")).lower()


def read_cookie(environ: Environ) -> str:
    """Return the value of the studio's cookie, or "" if the request does not contain it."""
    name = _name(environ)
    for part in environ.get("HTTP_COOKIE", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return str(value)
    return ""


def set_cookie(request: "Request", response: "Response", value: str, lifetime_s: float) -> None:
    """Set the studio's cookie in a response. If `value` is empty, make the browser delete the cookie."""
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
    """Return the scheme in the Authorization header, such as `Bearer`, or "" if there is none."""
    return str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")[0]


def _name(environ: Environ) -> str:
    """Return the cookie's name. It contains the server's port, because browsers send all cookies for a host
    to all servers on this host.
    """
    port = host_of(environ).rpartition("]")[2].rpartition(":")[2]
    return f"bifolio_studio_{port}" if port.isdigit() else "bifolio_studio"
