"""Answers reading requests in front of Flask: the same question again costs a look into a dictionary.

An answer is kept for a question (path, query, format, origin) and for what its asker may see, as
long as the state that it came from is the current one; nobody is ever shown what was rendered for
somebody with other permissions. Here answers get their ETag, 304 and compression. Whatever is not a
good answer to a plain question is left to the app.
"""

import gzip
import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, NamedTuple

import brotli  # type: ignore[import-untyped]
from werkzeug.http import parse_accept_header
from werkzeug.test import create_environ, run_wsgi_app

from server.api.reading import Reader, Shown
from server.api.request import JSON, STATE, Identities, parse_query
from server.auth.permissions import Actor
from server.site.site import Site, State

MAX_BYTES = 64 * 1024 * 1024
LARGEST = 4 * 1024 * 1024  # a larger answer is not kept
SMALLEST_COMPRESSED = 1024

Headers = list[tuple[str, str]]
StartResponse = Callable[..., Any]
Wsgi = Callable[[dict[str, Any], StartResponse], Iterable[bytes]]

# How each encoding is made, the best first.
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "br": lambda body: bytes(brotli.compress(body, quality=4)),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
_PATH = re.compile(r"/api/([^/]+)(?:/([^/]+))?/?")
_REPLACED = ("vary", "content-length", "content-type")
_VARY = "Authorization, Accept-Encoding, Strapi-Response-Format"


class Key(NamedTuple):
    """What the answer to a reading request depends on, the state aside.

    `sight` is never who asks, only what that one may do: everything, everything to be read, permissions.
    """

    path: str
    query: str
    v4: bool
    origin: str
    private: bool
    sight: tuple[bool, bool, frozenset[str]]


class Answer:
    """One rendered answer, and its compressed forms as far as somebody took one."""

    __slots__ = ("body", "etag", "forms", "headers")

    def __init__(self, headers: Headers, shown: Shown) -> None:
        self.headers, self.body, self.etag = headers, shown.body, shown.etag
        self.forms: dict[str, tuple[Headers, bytes]] = {}

    def form(self, encoding: str) -> tuple[Headers, bytes]:
        """Headers and body in an encoding (empty: as it is)."""
        found = self.forms.get(encoding)
        if found is None:
            found = self.forms[encoding] = self._make(encoding)
        return found

    def _make(self, encoding: str) -> tuple[Headers, bytes]:
        if not encoding:
            return [*self.headers, ("Content-Length", str(len(self.body))), ("ETag", self.etag)], self.body
        body = ENCODINGS[encoding](self.body)
        tag = f'{self.etag[:-1]}-{encoding}"'
        more = [("Content-Encoding", encoding), ("Content-Length", str(len(body))), ("ETag", tag)]
        return [*self.headers, *more], body

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        return len(self.body) * 2 + 1024


class Answers:
    """A WSGI app that answers from memory what it can, and asks `app` for the rest."""

    def __init__(self, app: Wsgi, site: Site, identities: Identities, most: int = MAX_BYTES) -> None:
        self.app, self.site, self.identities, self.most = app, site, identities, most
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, Answer] = OrderedDict()
        self._size = 0
        self._state: State | None = None
        self._headers = lru_cache(maxsize=256)(self._ask_headers)

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        state = environ[STATE] = self.site.current()
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return self.app(environ, start_response)
        try:
            actor = self._actor(environ, state)
            key = _key(environ, state, actor)
            kept = self._kept.get(key) if state is self._state else None
            answer = kept or self._read(environ, state, actor, key)
        except Exception:  # whatever is wrong, the app says it in the error envelope
            answer = None
        return _send(answer, environ, start_response) if answer else self.app(environ, start_response)

    def _actor(self, environ: dict[str, Any], state: State) -> Actor:
        """Who asks."""
        return self.identities.identify(environ.get("HTTP_AUTHORIZATION", ""), state.settings)

    def _read(self, environ: dict[str, Any], state: State, actor: Actor, key: Key) -> Answer | None:
        """The answer, kept if nothing changed meanwhile; None for a request that is not for here.

        Raises ApiError where the app has to say what is wrong.
        """
        if state.settings.rate_limit:
            return None
        parts = _PATH.fullmatch(environ["PATH_INFO"])
        type_ = state.schema.endpoints.get(parts[1]) if parts else None
        if parts is None or type_ is None or (parts[2] and type_.kind == "singleType"):
            return None
        document_id = parts[2] and parts[2].encode("latin-1").decode()
        reader = Reader(state, type_, actor, v4=key.v4)
        shown = reader.get(parse_query(key.query), document_id)
        control = "private, no-cache" if key.private else "public, max-age=0, must-revalidate"
        answer = Answer([*self._headers(key.origin), ("Cache-Control", control)], shown)
        if self.site.state is state and len(shown.body) <= LARGEST:
            self._keep(state, key, answer)
        return answer

    def _ask_headers(self, origin: str) -> Headers:
        """The headers that every answer of the app has for pages of an origin."""
        environ = create_environ("/_health", headers={"Origin": origin} if origin else None)
        headers = run_wsgi_app(self.app, environ)[2]
        vary = ", ".join([_VARY, *headers.get_all("Vary")])
        kept = [
            (k, v) for k, v in headers.items() if k.lower() not in ("vary", "content-length", "content-type")
        ]
        return [("Content-Type", JSON), *kept, ("Vary", vary)]

    def _keep(self, state: State, key: Key, answer: Answer) -> None:
        with self._lock:
            if self._state is not state:
                self._kept.clear()
                self._size, self._state = 0, state
            if key not in self._kept:
                self._size += answer.size
            self._kept[key] = answer
            while self._size > self.most:
                _, oldest = self._kept.popitem(last=False)
                self._size -= oldest.size


def _key(environ: dict[str, Any], state: State, actor: Actor) -> Key:
    return Key(
        environ["PATH_INFO"],
        environ.get("QUERY_STRING", ""),
        environ.get("HTTP_STRAPI_RESPONSE_FORMAT", "").lower() == "v4",
        "" if state.settings.cors == ("*",) else environ.get("HTTP_ORIGIN", ""),
        bool(environ.get("HTTP_AUTHORIZATION")),
        (actor.everything, actor.reading, actor.permissions),
    )


def _send(answer: Answer, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
    accepted = environ.get("HTTP_ACCEPT_ENCODING", "")
    encoding = _encoding(accepted) if accepted and len(answer.body) >= SMALLEST_COMPRESSED else ""
    headers, body = answer.form(encoding)
    wanted = environ.get("HTTP_IF_NONE_MATCH")
    if wanted and _matches(wanted, answer.etag):
        start_response("304 Not Modified", [h for h in headers if not h[0].lower().startswith("content-")])
        return []
    start_response("200 OK", list(headers))
    return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


@lru_cache(maxsize=512)
def _encoding(accepted: str) -> str:
    """The best encoding of those that a client takes; none where it takes none of ours."""
    found = dict(parse_accept_header(accepted))
    default = found.get("*", 0)
    return next((name for name in ENCODINGS if found.get(name, default) > 0), "")


def _matches(wanted: str, etag: str) -> bool:
    """Whether If-None-Match names an answer, in whatever encoding it was sent."""
    if wanted.strip() == "*":
        return True
    stem = etag[:-1]
    tags = (tag.strip().removeprefix("W/") for tag in wanted.split(","))
    return any(
        tag == etag or (tag.startswith(f"{stem}-") and tag[len(stem) + 1 : -1] in ENCODINGS) for tag in tags
    )
