"""The cookie of the studio: which requests it speaks for, and how it is given and taken away.

A browser sends a cookie along with requests of other pages too. So this one counts only for requests that the
studio's own page has made: those with the header `Bifolio-Studio`, which a page of another origin can't send
together with a cookie, unless `api.cors` names it; that come from this origin, by what the browser says, so
that no other origin may use the cookie, named or not; and that have no `Authorization`, which wins. All
others are requests of the public (docs/studio.md).
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
    """Let a request of the studio's page be made by whom its cookie stands for.

    Raises ForbiddenError for one that says so and was made by a page of another origin, and
    UnauthorizedError for one of the machine's owner that was made elsewhere.
    """
    path = environ["PATH_INFO"]
    if COOKIE_USED not in environ and _scheme(environ) == COOKIE_SCHEME:
        del environ["HTTP_AUTHORIZATION"]  # Who sends the scheme itself has not come in with the cookie.
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
    """Raise ForbiddenError for a request that no page of this origin has made.

    Browsers say in `Sec-Fetch-Site` who makes a request, where they hold the connection for safe; elsewhere
    they say at least in `Origin` who writes.
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
    """Whether a request is made at the machine itself, under a name that no other machine can have."""
    try:
        name = urlsplit(f"//{host_of(environ)}").hostname or ""
    except ValueError:  # It is no name at all.
        return False
    return is_loopback(environ.get("REMOTE_ADDR", "")) and is_loopback(name)


def host_of(environ: Environ) -> str:
    """The host and port that a request was sent to."""
    return str(environ.get("HTTP_HOST", "")).lower()


def read_cookie(environ: Environ) -> str:
    """The value of the cookie, "" where there is none."""
    name = _name(environ)
    for part in environ.get("HTTP_COOKIE", "").split(";"):
        key, _, value = part.strip().partition("=")
        if key == name:
            return str(value)
    return ""


def set_cookie(request: "Request", response: "Response", value: str, lifetime_s: float) -> None:
    """Give the browser the cookie; without a value, have it forget the one it has."""
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
    """The scheme of the header Authorization, "" where there is none."""
    return str(environ.get("HTTP_AUTHORIZATION", "")).partition(" ")[0]


def _name(environ: Environ) -> str:
    """The cookie's name, with the port: all servers of a host share its cookies."""
    port = host_of(environ).rpartition("]")[2].rpartition(":")[2]
    return f"bifolio_studio_{port}" if port.isdigit() else "bifolio_studio"
