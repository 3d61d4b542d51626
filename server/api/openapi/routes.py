"""GET /openapi.json and /docs: what the API takes and answers, for programs and for people.

Both are outside /api. The document shows whoever asks what they may do and nothing more: without
credentials that is what the public may do. The page holds nothing but itself; it asks for the document.
"""

from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Any

from flask import Blueprint, Response, redirect, request
from werkzeug.wrappers import Response as BaseResponse

from server.api.openapi.document import describe_site
from server.api.request import Identities, answer, state_of
from server.auth.permissions import Actor
from server.errors import NotFoundError
from server.site.site import State

MOST = 64  # documents that are kept: one for each set of permissions that somebody asked with
_PAGE = Path(__file__).parent / "page"
_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
)


class Documents:
    """Keeps the documents of the current state, by what their readers may do."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._state: State | None = None
        self._kept: dict[Any, bytes] = {}

    def of(self, state: State, actor: Actor) -> bytes:
        """The document for an actor."""
        sight = (actor.everything, actor.reading, actor.permissions)
        with self._lock:
            if self._state is not state or len(self._kept) >= MOST:
                self._kept, self._state = {}, state
            kept = self._kept
        if sight not in kept:
            kept[sight] = describe_site(state, actor)
        return kept[sight]


def blueprint(identities: Identities) -> Blueprint:
    """The routes of the document and of the page that shows it."""
    bp = Blueprint("openapi", __name__)
    documents = Documents()

    @bp.get("/openapi.json", strict_slashes=False)
    def document() -> Response:
        state = state_of(request)
        actor = identities.actor(request)
        private = "Authorization" in request.headers
        found = _tagged(answer(documents.of(state, actor)), private=private)
        found.vary.add("Authorization")
        return found

    @bp.get("/docs")
    def page() -> Response:
        return _file("index.html")

    @bp.get("/docs/")
    def page_with_slash() -> BaseResponse:
        return redirect("../docs")  # what the page asks for is relative to it

    @bp.get("/docs/<name>")
    def part(name: str) -> Response:
        return _file(name)

    return bp


def _file(name: str) -> Response:
    if name not in _FILES:
        raise NotFoundError()
    found = Response((_PAGE / name).read_bytes(), content_type=_FILES[name])
    found.headers["Content-Security-Policy"] = _POLICY
    return _tagged(found, private=False)


def _tagged(found: Response, *, private: bool) -> Response:
    """The answer with its ETag, or 304 where the client has it already."""
    found.set_etag(blake2b(found.get_data(), digest_size=12).hexdigest())
    found.headers["Cache-Control"] = "private, no-cache" if private else "public, max-age=0, must-revalidate"
    found.make_conditional(request)
    return found
