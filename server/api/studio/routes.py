"""GET /studio: the page where editors work; and /studio/-/session, where they come in and leave.

The page is the same for everybody and says nothing of the site: what it shows, it asks the API for. Its files
are below `/studio/-/`, where no content type can be; every other path is a place in the page itself.
"""

from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.request import read_body, state_of
from server.api.response import EVERYBODY
from server.api.routes.login import device_name, prove_password
from server.api.studio.cookie import is_at_machine, read_cookie, require_own_page, set_cookie
from server.auth.owner import PREFIX as OWNER_PREFIX
from server.auth.owner import end_session, spend_key
from server.errors import BadRequestError, ForbiddenError, NotFoundError, UnavailableError, ValidationError
from server.site.site import Site

FOR_EVER = "public, max-age=31536000, immutable"
PAGE = Path(__file__).parent / "page"
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
USED_KEY = "This key has been used, or is more than an hour old"
ELSEWHERE = "A key can only be used at the machine that the server runs on"


def blueprint(site: Site, identities: Identities) -> Blueprint:
    """The routes of the page, its files, and sessions."""
    bp = Blueprint("studio", __name__, url_prefix="/studio")

    @bp.get("", strict_slashes=False)
    @bp.get("/<path:place>")
    def page(place: str = "") -> Response:
        if place.startswith("-/"):
            raise NotFoundError()
        return _page(request.path)

    @bp.get("/-/<version>/<path:name>")
    def file(version: str, name: str) -> Response:
        return _file(version, name)

    @bp.post("/-/session")
    def sign_in() -> Response:
        require_own_page(request.environ)
        body = read_body(request)
        key = body.get("key") if isinstance(body, dict) else None
        value = by_password(body) if key is None else by_key(key)
        response = Response(status=204)
        set_cookie(request, response, value, state_of(request).settings.session.total_seconds())
        return response

    @bp.delete("/-/session")
    def sign_out() -> Response:
        require_own_page(request.environ)
        value = read_cookie(request.environ)
        if value.startswith(OWNER_PREFIX):
            end_session(site.root, value)
        elif value and (known := identities.sessions.read_studio(value)):
            identities.logins.end(known[0], known[2])
        response = Response(status=204)
        set_cookie(request, response, "", 0)
        return response

    def by_key(key: object) -> str:
        if not is_at_machine(request.environ):
            raise ForbiddenError(ELSEWHERE)
        try:
            session = spend_key(site.root, key) if isinstance(key, str) else None
        except OSError as error:
            raise UnavailableError() from error
        if session is None:
            raise ValidationError(USED_KEY)
        return session

    def by_password(body: object) -> str:
        identities.permit(request, "auth", "callback")
        if not request.is_json:
            raise BadRequestError("A sign-in must be JSON")
        user = prove_password(identities, request, body)
        lasts = state_of(request).settings.session
        agent = device_name(request.headers.get("User-Agent", ""))
        return identities.sessions.studio_token(
            user, identities.logins.begin(user, lasts, lasts, None, agent)
        )

    return bp


def _page(path: str) -> Response:
    """The page, whose files are named from where it is shown, so that a proxy may add a path before it."""
    up = "../" * (path.count("/") - 1)
    text = _files()["index.html"].decode().replace('="./', f'="{up}studio/-/{_version()}/')
    headers = {"Cache-Control": EVERYBODY, "Content-Security-Policy": POLICY}
    return Response(text, headers=headers, content_type="text/html; charset=utf-8")


def _file(version: str, name: str) -> Response:
    """A file of the page; as it is now, also for a page that was opened before the server was replaced."""
    kind = KINDS.get(PurePosixPath(name).suffix)
    if name not in _files() or not kind:
        raise NotFoundError()
    control = FOR_EVER if version == _version() else EVERYBODY
    headers = {"Cache-Control": control, "Content-Security-Policy": POLICY}
    return Response(_files()[name], headers=headers, content_type=f"{kind}; charset=utf-8")


@cache
def _files() -> Mapping[str, bytes]:
    """The files of the page, by their paths below it."""
    return {p.relative_to(PAGE).as_posix(): p.read_bytes() for p in sorted(PAGE.rglob("*")) if p.is_file()}


@cache
def _version() -> str:
    """What names the files as they are, so that browsers may keep them."""
    return blake2b(repr(sorted(_files().items())).encode(), digest_size=8).hexdigest()
