"""The studio's session cookie: when it authenticates a request, and how it is set and cleared.

Browsers also send a cookie with requests of other pages. So it counts only if a request meets all of these
conditions; other requests are public (docs/studio.md):

- It has the header `Bifolio-Studio`. A page of another origin can't send that with a cookie unless `api.cors`
  lists the origin.
- It comes from this origin according to the browser, so that no other origin can use the cookie, listed or
  not.
- It has no `Authorization` header, which takes precedence.
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
OTHER_PAGE_MESSAGE = "A request of the studio must come from its own page"


def use_cookie(environ: Environ) -> None:
    """Authenticate a request of the studio's page by its cookie.

    Raises ForbiddenError if a page of another origin made the request, and UnauthorizedError if the cookie is
    the owner's and the request came from another machine.
    """
    path = environ["PATH_INFO"]
    if COOKIE_USED not in environ and _scheme(environ) == COOKIE_SCHEME:
        del environ["HTTP_AUTHORIZATION"]  # A client must not use this scheme itself.
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
    """Raise ForbiddenError unless a page of this origin made the request.

    Over connections they consider secure, browsers name the requesting site in `Sec-Fetch-Site`. Otherwise,
    they send `Origin` at least with writes.
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
    """Whether a request comes from this machine and was addressed to a loopback name."""
    try:
        name = urlsplit(f"//{host_of(environ)}").hostname or ""
    except ValueError:  # It is not a valid host.
        return False
    return is_loopback(environ.get("REMOTE_ADDR", "")) and is_loopback(name)


def host_of(environ: Environ) -> str:
    """Return the host and port that a request was sent to."""
    return str(environ.get("HTTP_HOST", "")).lower()


def read_cookie(environ: Environ) -> str:
    """Return the value of the cookie; "" if there is none."""
    name = _name(environ)
    for part in environ.get("HTTP_COOKIE", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return str(value)
    return ""


def set_cookie(request: "Request", response: "Response", value: str, lifetime_s: float) -> None:
    """Set the cookie in a response; without a value, delete it."""
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
    """Return the scheme of the Authorization header; "" if there is none."""
    return str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")[0]


def _name(environ: Environ) -> str:
    """Return the cookie's name, which includes the port, because all servers on a host share cookies."""
    port = host_of(environ).rpartition("]")[2].rpartition(":")[2]
    return f"bifolio_studio_{port}" if port.isdigit() else "bifolio_studio"
