"""The studio's page at GET /studio, and its sessions at /studio/-/session.

The page is the same for everyone, because it contains no data from the site. Its scripts fetch the data from
the API. The page's files are below `/studio/-/`, because no content type can have the name `-`. All other
paths below /studio display views in the same page.
"""

import re
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from posixpath import normpath

from flask import Response, request

from server.api.identities import Identities
from server.api.request import read_body, require_permission, state_of
from server.api.response import PUBLIC_REVALIDATE, encoding_for, in_brotli, matches
from server.api.routes.handlers import Handlers
from server.api.routes.login import device_name, prove_password
from server.api.studio.cookie import is_at_machine, read_cookie, require_own_page, set_cookie
from server.auth.owner import SESSION_PREFIX as OWNER_PREFIX
from server.auth.owner import end_session, spend_key
from server.config.model import Settings
from server.errors import BadRequestError, ForbiddenError, NotFoundError, UnavailableError, ValidationError
from server.service.cache_tags import tag_of_bytes
from server.site.site import Site

IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"
# In a checkout of the repository, this folder contains plain JavaScript modules. In a package, it contains
# bundles that vendor/studio.mjs has created from these modules.
PAGE = Path(__file__).parent / "page"
KINDS = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain"}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# Brotli qualities. With the best quality, compression takes half a second for the largest file, and another
# half second for all modules, which would delay a first visit. With the quick quality, it takes 30 ms for all
# modules, and they become 8 % larger.
BEST_BROTLI_QUALITY, QUICK_BROTLI_QUALITY = 11, 5
VENDOR = "vendor/"
PRELOADED_MODULES = (
    "documents/list-page.js",
    "documents/document-page.js",
)  # Of the modules that pages.js imports on demand, these are used most often.
IMPORT = re.compile(r'(?:^|[;}])(?:import|export)\b[^"();]*?"(\.{1,2}/[^"]+\.js)"', re.MULTILINE)
SHEET = "page.css"
_SHEETS = re.compile(rb'^@import "\./([^"]+\.css)";\n', re.MULTILINE)
_COMMENT = re.compile(rb"^[ \t]*/\*\*(?:(?!\*/).)*\*/[ \t]*$", re.MULTILINE | re.DOTALL)
USED_KEY_MESSAGE = "This key has already been used, or is more than an hour old"
OTHER_MACHINE_MESSAGE = "A key can only be used on the machine where the server runs"


def bind(handles: Handlers, site: Site, identities: Identities) -> None:
    """Register the handlers for the studio's page, its files and its sessions."""

    @handles("studioPage", "studioPlace")
    def page(place: str = "") -> Response:
        if place.startswith("-/"):
            raise NotFoundError()
        return _page(request.path, state_of(request).settings, at_home=not place)

    @handles("studioFile")
    def file(version: str, name: str) -> Response:
        return _file(version, name)

    @handles("studioSignIn")
    def sign_in() -> Response:
        require_own_page(request.environ)
        body = read_body(request)
        key = body.get("key") if isinstance(body, dict) else None
        value = by_password(body) if key is None else by_key(key)
        response = Response(status=204)
        set_cookie(request, response, value, state_of(request).settings.auth.session.total_seconds())
        return response

    @handles("studioSignOut")
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
            raise ForbiddenError(OTHER_MACHINE_MESSAGE)
        try:
            session = spend_key(site.root, key) if isinstance(key, str) else None
        except OSError as error:
            raise UnavailableError() from error
        if session is None:
            raise ValidationError(USED_KEY_MESSAGE)
        return session

    def by_password(body: object) -> str:
        require_permission(request, "auth", "callback")
        if not request.is_json:
            raise BadRequestError("To sign in, send a JSON body")
        user = prove_password(request, body)
        lasts = state_of(request).settings.auth.session
        agent = device_name(request.headers.get("User-Agent", ""))
        return identities.sessions.studio_token(
            user, identities.logins.begin(user, lasts, lasts, None, agent)
        )


def _page(path: str, settings: Settings, *, at_home: bool) -> Response:
    """Return the response with the HTML page. The URLs of the page's files are relative, so the page also
    works behind a proxy that adds a path prefix.

    The content security policy allows frames only from the origins of previews.
    """
    up = "../" * (path.count("/") - 1)
    text = _index(at_home=at_home).replace('="./', f'="{up}studio/-/{_version()}/')
    framed = sorted({preview.origin or "'self'" for preview in settings.preview.values()})
    policy = f"{POLICY}; frame-src {' '.join(framed)}" if framed else POLICY
    # The entity tag also depends on the policy, so browsers don't use a cached page after the policy has
    # changed.
    headers = {"Cache-Control": PUBLIC_REVALIDATE, "Content-Security-Policy": policy}
    headers["ETag"] = tag_of_bytes(f"{policy}\n{text}".encode())
    return Response(text, headers=headers, content_type="text/html; charset=utf-8")


def _file(version: str, name: str) -> Response:
    """Return the response with the current content of a file, even if the URL contains the version from an
    earlier release of the studio.
    """
    kind = KINDS.get(PurePosixPath(name).suffix)
    if name not in _files() or not kind:
        raise NotFoundError()
    control = IMMUTABLE_CACHE_CONTROL if version == _version() else PUBLIC_REVALIDATE
    headers = {"Cache-Control": control, "Content-Security-Policy": POLICY, "Vary": "Accept-Encoding"}
    kind = f"{kind}; charset=utf-8"
    if encoding_for(request.environ) != "br":
        return Response(_files()[name], headers=headers, content_type=kind)
    etag = tag_of_bytes(_files()[name])
    headers["ETag"] = f'{etag[:-1]}-br"'
    if matches(request.headers.get("If-None-Match", ""), etag):
        return Response([], 304, headers, direct_passthrough=True)
    headers["Content-Encoding"] = "br"
    return Response(compressed(name), headers=headers, content_type=kind, direct_passthrough=True)


# The cache saves 19 of the 180 µs for a module of 1 kB in brotli, and more for larger modules.
@cache
def compressed(name: str) -> bytes:
    """Return a file compressed with brotli. If the package does not contain the compressed file, each process
    compresses the file once.
    """
    packaged = _files().get(f"{name}.br")
    return packaged or in_brotli(
        _files()[name], BEST_BROTLI_QUALITY if name.startswith(VENDOR) else QUICK_BROTLI_QUALITY
    )


# The cache saves 14 ms for each request for a file.
@cache
def _files() -> Mapping[str, bytes]:
    """Return the contents of all files of the page, by relative path. All stylesheets are combined into one
    file.
    """
    files = {p.relative_to(PAGE).as_posix(): p.read_bytes() for p in sorted(PAGE.rglob("*")) if p.is_file()}
    files |= {SHEET: _SHEETS.sub(lambda found: files[found[1].decode()], files[SHEET])}
    return {name: _without_comments(data) if name.endswith(".js") else data for name, data in files.items()}


def _without_comments(module: bytes) -> bytes:
    """Return a JavaScript module without the comments that fill whole lines. Empty lines replace them, so
    that the line numbers stay the same.
    """
    return _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), module)


# The cache saves 12 ms for each request for the page.
@cache
def _index(*, at_home: bool) -> str:
    """Return the HTML page. It contains links that make the browser preload the page's modules. Otherwise,
    the browser would need several round trips to find all modules.

    On the home page, the links to the modules for lists and forms have `rel="ahead"`. The script ahead.js
    loads these modules after the first paint.
    """
    first = modules_of("main.js")
    more = sorted({name for part in PRELOADED_MODULES for name in (part, *modules_of(part))} - {*first})
    links = [f'<link rel="modulepreload" href="./{name}">\n' for name in first]
    how = 'rel="ahead" fetchpriority="low"' if at_home else 'rel="modulepreload"'
    links += [f'<link {how} href="./{name}">\n' for name in more]
    return _files()["index.html"].decode().replace("<script ", f"{''.join(links)}<script ", 1)


def modules_of(first: str) -> list[str]:
    """Return the JavaScript modules that a module imports statically, directly or indirectly."""
    found, waiting = set[str](), [first]
    while waiting:
        name = waiting.pop()
        for path in IMPORT.findall(_files()[name].decode()):
            imported = normpath(f"{PurePosixPath(name).parent}/{path}")
            if imported not in found:
                found.add(imported)
                waiting.append(imported)
    return sorted(found)


# The cache saves 7 ms for each request for a file.
@cache
def _version() -> str:
    """Return a digest of all files. The files' URLs contain this digest, so browsers can cache each file
    permanently.
    """
    return blake2b(repr(sorted(_files().items())).encode(), digest_size=8).hexdigest()
