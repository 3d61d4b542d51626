"""Keeps rendered answers in front of Flask: the same question again costs a look into a dictionary.

An answer is kept for a question (path, query, format, origin) and for what its asker may see, as
long as the state that it came from is the current one; nobody is ever shown what was rendered for
somebody with other permissions. Here, too, answers get their ETag, 304 and compression.
"""

import gzip
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Any

import brotli  # type: ignore[import-untyped]
from werkzeug.http import parse_accept_header

from server.context import Identities
from server.permissions import Actor
from server.site import Site, State

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
_VARY = "Authorization, Accept-Encoding, Strapi-Response-Format"


class Answer:
    """One rendered answer, and its compressed forms as far as somebody took one."""

    __slots__ = ("body", "etag", "forms", "headers")

    def __init__(self, headers: Headers, body: bytes, etag: str) -> None:
        self.headers, self.body, self.etag = headers, body, etag
        self.forms: dict[str, tuple[Headers, bytes]] = {}

    def form(self, encoding: str) -> tuple[Headers, bytes]:
        """Headers and body in an encoding (empty: as it is)."""
        found = self.forms.get(encoding)
        if found is None:
            found = self.forms[encoding] = self._make(encoding)
        return found

    def _make(self, encoding: str) -> tuple[Headers, bytes]:
        body, etag = self.body, self.etag
        headers = [h for h in self.headers if h[0].lower() not in ("content-length", "etag")]
        if encoding:
            body = ENCODINGS[encoding](body)
            etag = f'{etag[:-1]}-{encoding}"'
            headers.append(("Content-Encoding", encoding))
        return [*headers, ("Content-Length", str(len(body))), ("ETag", etag)], body

    @property
    def size(self) -> int:
        """About how many bytes it takes to keep."""
        return len(self.body) * 2 + 1024


class Answers:
    """A WSGI app that answers from memory what it can, and asks `app` for the rest."""

    def __init__(self, app: Wsgi, site: Site, identities: Identities, most: int = MAX_BYTES) -> None:
        self.app, self.site, self.identities, self.most = app, site, identities, most
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[Any, ...], Answer] = OrderedDict()
        self._size = 0
        self._state: State | None = None

    def __call__(self, environ: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        state = self.site.state
        key = self._key(environ, state)
        if key is None:
            return self.app(environ, start_response)
        kept = self._kept.get(key) if state is self._state else None
        answer = kept or self._ask(environ, start_response, state, key)
        return _send(answer, environ, start_response) if isinstance(answer, Answer) else answer

    def _key(self, environ: dict[str, Any], state: State) -> tuple[Any, ...] | None:
        """What the answer depends on; None for a request that is not for here."""
        path: str = environ["PATH_INFO"]
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD") or not path.startswith("/api/"):
            return None
        if path.split("/", 3)[2] not in state.schema.endpoints or state.settings.rate_limit:
            return None
        try:
            actor = self.identities.identify(environ.get("HTTP_AUTHORIZATION", ""), state.settings)
        except Exception:
            return None  # whatever is wrong with it, the app says it in the error envelope
        origin = "" if state.settings.cors == ("*",) else environ.get("HTTP_ORIGIN", "")
        v4 = environ.get("HTTP_STRAPI_RESPONSE_FORMAT", "").lower() == "v4"
        query = environ.get("QUERY_STRING", "")
        return (path, query, v4, origin, "HTTP_AUTHORIZATION" in environ, *_sight(actor))

    def _ask(
        self, environ: dict[str, Any], start_response: StartResponse, state: State, key: tuple[Any, ...]
    ) -> Answer | Iterable[bytes]:
        """Ask the app; keep the answer if it is good and nothing changed meanwhile."""
        told: list[Any] = []

        def remember(status: str, headers: Headers, exc_info: Any = None) -> None:
            told[:] = [status, headers]

        asked = {**environ, "REQUEST_METHOD": "GET"}
        chunks = self.app(asked, remember)
        body = b"".join(chunks)
        close = getattr(chunks, "close", None)
        if close:
            close()
        status, headers = told
        if not status.startswith("200 "):
            start_response(status, headers)
            return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]
        answer = Answer(_headers(headers, private=bool(key[4])), body, _etag(headers, body))
        if self.site.state is state and len(body) <= LARGEST:
            self._keep(state, key, answer)
        return answer

    def _keep(self, state: State, key: tuple[Any, ...], answer: Answer) -> None:
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


def _sight(actor: Actor) -> tuple[Any, ...]:
    """What decides what an actor sees: never who it is, only what it may do."""
    return (actor.everything, actor.reading, actor.permissions)


def _headers(headers: Headers, *, private: bool) -> Headers:
    kept = [h for h in headers if h[0].lower() not in ("cache-control", "vary", "content-length")]
    vary = _VARY + (
        ", Origin" if any(h[0].lower() == "vary" and "origin" in h[1].lower() for h in headers) else ""
    )
    control = "private, no-cache" if private else "public, max-age=0, must-revalidate"
    return [*kept, ("Cache-Control", control), ("Vary", vary)]


def _etag(headers: Headers, body: bytes) -> str:
    given = next((value for name, value in headers if name.lower() == "etag"), None)
    return given or f'"{blake2b(body, digest_size=12).hexdigest()}"'


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
