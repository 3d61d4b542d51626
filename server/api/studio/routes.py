"""Handlers for the studio's page, files and sessions.

The URLs of the files begin with `/studio/-/`, because no content type can be named `-`.
"""

import re
from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import blake2b, sha256
from pathlib import Path, PurePosixPath
from posixpath import normpath

from flask import Response, request

from server.api.identities import COOKIE_SCHEME, Identities
from server.api.request import read_body, require_permission, state_of
from server.api.response import PUBLIC_REVALIDATE, best_encoding, compress_brotli, etag_matches
from server.api.routes.handlers import Handlers
from server.api.routes.login import check_password, device_name
from server.api.studio.cookie import is_at_machine, read_cookie, require_same_origin, set_cookie
from server.auth.owner import SESSION_PREFIX as OWNER_PREFIX
from server.auth.owner import end_session, spend_key
from server.config.model import Settings
from server.errors import (
    BadRequestError,
    ForbiddenError,
    NotFoundError,
    UnauthorizedError,
    UnavailableError,
    ValidationError,
)
from server.service.cache_tags import tag_of_bytes
from server.site.site import Site

IMMUTABLE_CACHE_CONTROL = "public, max-age=31536000, immutable"
# JavaScript modules or, in a packaged release, the bundles that vendor/studio.mjs creates from them.
PAGE = Path(__file__).parent / "page"
KINDS = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
# The best quality takes half a second for the largest file, and another half second for all modules. This
# would delay the first visit. The quick quality takes 30 ms for all modules, and makes them 8% larger.
BEST_BROTLI_QUALITY, QUICK_BROTLI_QUALITY = 11, 8
VENDOR = "vendor/"
PRELOADED_MODULE = "documents/pages.js"  # the most used module that pages.js imports on demand
IMPORT = re.compile(r'(?:^|[;}])(?:import|export)\b[^"();]*?"(\.{1,2}/[^"]+\.js)"', re.MULTILINE)
MAIN_SCRIPT = '<script type="module" '
SHEET = "page.css"
_INLINE_SCRIPT = re.compile(rb"<script id=[^>]+>([^<]+)</script>")
_SHEETS = re.compile(rb'^@import "\./([^"]+\.css)";\n', re.MULTILINE)
_SHEET_COMMENT_OR_INDENT = re.compile(rb"/\*.*?\*/|^ +", re.MULTILINE | re.DOTALL)
# Comments on lines of their own, and those that give a type to an expression
_COMMENT = re.compile(
    rb"^[ \t]*(?:/\*\*(?:(?!\*/).)*\*/[ \t]*$|//[^\n]*)|/\*\* @[^\n]*?\*/ ?", re.MULTILINE | re.DOTALL
)
USED_KEY_MESSAGE = (
    "This key has already been used, or is more than an hour old. For a new key, stop the server with Ctrl-C "
    "and start it again"
)
OTHER_MACHINE_MESSAGE = "A key can only be used on the machine where the server runs"


def bind(handles: Handlers, site: Site, identities: Identities) -> None:
    """Register the handlers."""

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
        require_same_origin(request.environ)
        body = read_body(request)
        key = body.get("key") if isinstance(body, dict) else None
        value = by_password(body) if key is None else by_key(key)
        response = Response(status=204)
        set_cookie(request, response, value, state_of(request).settings.auth.session.total_seconds())
        return response

    @handles("studioSignOut")
    def sign_out() -> Response:
        require_same_origin(request.environ)
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
        # If a signed-in user opens the address again, status 400 would make the browser log an error.
        if session is None and not (session := current_session()):
            raise ValidationError(USED_KEY_MESSAGE)
        return session

    def current_session() -> str:
        value = read_cookie(request.environ)
        try:
            identities.identify(f"{COOKIE_SCHEME} {value}", state_of(request).settings)
        except UnauthorizedError:
            return ""
        return value

    def by_password(body: object) -> str:
        require_permission(request, "auth", "callback")
        if not request.is_json:
            raise BadRequestError("To sign in, send a JSON body")
        user = check_password(request, body)
        lasts = state_of(request).settings.auth.session
        agent = device_name(request.headers.get("User-Agent", ""))
        return identities.sessions.studio_token(
            user, identities.logins.begin(user, lasts, lasts, None, agent)
        )


def _page(path: str, settings: Settings, *, at_home: bool) -> Response:
    # Relative URLs also work behind a proxy that adds a path prefix.
    up = "../" * (path.count("/") - 1)
    text = _index(at_home=at_home).replace('="./', f'="{up}studio/-/{_version()}/')
    framed = sorted({preview.origin or "'self'" for preview in settings.preview.values()})
    policy = POLICY.replace("script-src 'self'", f"script-src 'self' {_inline_script_source()}")
    policy += f"; frame-src {' '.join(framed)}" if framed else ""
    # The tag also depends on the policy, so that a changed policy invalidates cached pages.
    headers = {"Cache-Control": PUBLIC_REVALIDATE, "Content-Security-Policy": policy}
    headers["ETag"] = tag_of_bytes(f"{policy}\n{text}".encode())
    return Response(text, headers=headers, content_type="text/html; charset=utf-8")


def _file(version: str, name: str) -> Response:
    kind = KINDS.get(PurePosixPath(name).suffix)
    if name not in _files() or not kind:
        raise NotFoundError()
    # URLs with the version of an earlier release also return the current file.
    control = IMMUTABLE_CACHE_CONTROL if version == _version() else PUBLIC_REVALIDATE
    headers = {"Cache-Control": control, "Content-Security-Policy": POLICY, "Vary": "Accept-Encoding"}
    kind = f"{kind}; charset=utf-8"
    if best_encoding(request.environ) != "br":
        return Response(_files()[name], headers=headers, content_type=kind)
    etag = tag_of_bytes(_files()[name])
    headers["ETag"] = f'{etag[:-1]}-br"'
    if etag_matches(request.headers.get("If-None-Match", ""), etag):
        return Response([], 304, headers, direct_passthrough=True)
    headers["Content-Encoding"] = "br"
    return Response(compressed(name), headers=headers, content_type=kind, direct_passthrough=True)


# The cache saves 19 of the 180 µs that a brotli-compressed module of 1 kB takes, and more for larger modules.
@cache
def compressed(name: str) -> bytes:
    packaged = _files().get(f"{name}.br")
    return packaged or compress_brotli(
        _files()[name], BEST_BROTLI_QUALITY if name.startswith(VENDOR) else QUICK_BROTLI_QUALITY
    )


# The cache saves 14 ms for each request for a file.
@cache
def _files() -> Mapping[str, bytes]:
    files = {p.relative_to(PAGE).as_posix(): p.read_bytes() for p in sorted(PAGE.rglob("*")) if p.is_file()}
    sheet = _SHEETS.sub(lambda found: files[found[1].decode()], files[SHEET])
    files |= {SHEET: _SHEET_COMMENT_OR_INDENT.sub(b"", sheet)}
    return {name: _without_comments(data) if name.endswith(".js") else data for name, data in files.items()}


def _without_comments(module: bytes) -> bytes:
    # Empty lines replace comments, so line numbers stay the same.
    return _COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), module)


# The cache saves 12 ms for each request for the page.
@cache
def _index(*, at_home: bool) -> str:
    # Without preload links, the browser would need multiple round trips to find all modules.
    first = imported_modules("main.js")
    more = sorted({PRELOADED_MODULE, *imported_modules(PRELOADED_MODULE)} - {"main.js", *first})
    links = [f'<link rel="modulepreload" href="./{name}">\n' for name in first]
    how = 'rel="ahead" fetchpriority="low"' if at_home else 'rel="modulepreload"'
    links += [f'<link {how} href="./{name}">\n' for name in more]
    return _files()["index.html"].decode().replace(MAIN_SCRIPT, f"{''.join(links)}{MAIN_SCRIPT}", 1)


def _inline_script_source() -> str:
    # Browsers run the script only if the policy contains its hash. It sends the first request to the API.
    [script] = _INLINE_SCRIPT.findall(_files()["index.html"])
    return f"'sha256-{b64encode(sha256(script).digest()).decode()}'"


def imported_modules(entry_module: str) -> list[str]:
    """Return the JavaScript modules that a module imports statically, directly or through other modules."""
    found, waiting = set[str](), [entry_module]
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
    # Part of the files' URLs, so browsers can cache each file permanently.
    return blake2b(repr(sorted(_files().items())).encode(), digest_size=8).hexdigest()
