"""What a request is answered with, and the one way in which that is sent.

An `Answer` says what is answered and who may keep it. `represent` makes of it what one client gets: with
the headers that every answer has, an entity tag, a compressed body. `send` hands that to the server, or
304 where the client has it already.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, NamedTuple

import brotli  # type: ignore[import-untyped]

from server.api.environ import BUDGET
from server.service.cache_tags import tag_of_bytes

Header = tuple[str, str]
Environ = dict[str, Any]
StartResponse = Callable[..., Any]

JSON = "application/json; charset=utf-8"
READ_METHODS = ("GET", "HEAD")
CACHE_TAG = "Cache-Tag"  # the header that says what an answer was made of (service.cache_tags)

# Cache-Control: who may store an answer. Whoever does must ask the server each time whether it still holds.
PUBLIC_REVALIDATE = "public, max-age=0, must-revalidate"
PRIVATE_REVALIDATE = "private, no-cache"
NO_STORE = "no-store"

SECURITY_HEADERS: tuple[Header, ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "SAMEORIGIN"),
)
# How each encoding is made, the best first.
ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: in_brotli(body, 4),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
MIN_COMPRESSED_BYTES = 1024  # To compress a smaller body saves nothing.
# A larger body is compressed less well, in a third of the time, and by one request of a process at a time.
FAST_COMPRESSION_BYTES = 256 * 1024
# An event loop compresses no larger body: that takes some milliseconds.
OFF_LOOP_COMPRESSION_BYTES = 64 * 1024
QUICK_ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: in_brotli(body, 1),
    "gzip": lambda body: gzip.compress(body, 1, mtime=0),
}
# A name and its quality in Accept-Encoding. werkzeug reads it too, but takes 25 ms of every start.
_CODING = re.compile(r"([^\s,;=]+)\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]*)?))?\s*(?:,|$)")
MAX_ACCEPT_CHARS = 200  # Characters of Accept-Encoding that are read; known clients send some thirty.
_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
BODY_HEADERS = ("Content-Type", "Content-Length", "Content-Encoding")  # A 304 does not have these headers.


class Answer(NamedTuple):
    """An answer to a request, the same for every client that may have it.

    `body` is all of it, or a stream of its parts, which is sent as it is. `etag` may be left to `represent`.
    `cache_control` is EVERYBODY, CALLER, NOBODY or another value of the header; "" leaves it to `represent`.
    `vary` names the headers of the request that the answer depends on.
    """

    body: bytes | Iterable[bytes]
    status: int = 200
    content_type: str = JSON
    etag: str = ""
    cache_control: str = ""
    vary: tuple[str, ...] = ("Authorization",)
    headers: tuple[Header, ...] = ()


class Representation(NamedTuple):
    """An answer as one client gets it; `etag` is what If-None-Match is compared with, "" where it is not.

    `body` is empty where it would have cost much to compress it and this client needs only the headers.
    """

    status: str
    headers: tuple[Header, ...]
    body: bytes | Iterable[bytes]
    etag: str


def without(headers: Iterable[Header], *names: str) -> tuple[Header, ...]:
    """Headers without those of some names."""
    return tuple(header for header in headers if header[0] not in names)


def represent(answer: Answer, environ: Environ, vary: tuple[str, ...] = ()) -> Representation:
    """An answer as the client of a request gets it.

    A successful read that has no entity tag gets one of its bytes. `vary` names what every answer depends
    on, beside what this one does. Raises BusyError and NeedsThreadPool for a large body to compress.
    """
    body, etag = answer.body if answer.status != 204 else b"", answer.etag
    read = answer.status == 200 and environ["REQUEST_METHOD"] in READ_METHODS
    headers = [*answer.headers, *SECURITY_HEADERS, ("Cache-Control", _cache_control(answer, environ))]
    if isinstance(body, bytes) and answer.status != 204:
        if not etag and read:
            etag = tag_of_bytes(body)
        encoding = _worthwhile(encoding_for(environ), len(body), read=read)
        headers.extend(_about_body(body, answer.content_type, etag, encoding))
        if encoding and len(body) > FAST_COMPRESSION_BYTES and _needs_headers_only(environ, etag):
            body = b""
        else:
            body = _encode(body, encoding, environ)
            headers.append(("Content-Length", str(len(body))))
        vary = ("Accept-Encoding", *vary)
    headers.extend(_vary(answer.vary + vary))
    return Representation(_STATUS[answer.status], tuple(headers), body, etag if read else "")


def send(
    shown: Representation, environ: Environ, start_response: StartResponse, more: Iterable[Header] = ()
) -> Iterable[bytes]:
    """Answer a request; `more` are headers of this answer alone."""
    known = environ.get("HTTP_IF_NONE_MATCH")
    if known and shown.etag and matches(known, shown.etag):
        start_response("304 Not Modified", [*without(shown.headers, *BODY_HEADERS), *more])
        return _close(shown.body)
    start_response(shown.status, [*shown.headers, *more])
    if environ["REQUEST_METHOD"] == "HEAD":
        return _close(shown.body)
    return [shown.body] if isinstance(shown.body, bytes) else shown.body


def encoding_for(environ: Environ) -> str:
    """The best encoding of those that a client takes (Accept-Encoding); "" where it takes none of ours."""
    accepted = environ.get("HTTP_ACCEPT_ENCODING")
    return _encoding_for(accepted[:MAX_ACCEPT_CHARS]) if accepted else ""


def in_brotli(body: bytes, quality: int) -> bytes:
    """A body in brotli, by a quality from 0 to 11, for what is compressed once and sent often."""
    return bytes(brotli.compress(body, quality=quality))


# Saves 2.7 µs of 10.1 of a repeated read by a browser.
@lru_cache(maxsize=512)
def _encoding_for(accepted: str) -> str:
    qualities = {name: float(quality or 1) for name, quality in _CODING.findall(accepted.lower())}
    default = qualities.get("*", 0)
    return next((name for name in ENCODINGS if qualities.get(name, default) > 0), "")


def matches(known: str, etag: str) -> bool:
    """Whether If-None-Match names an answer, in whatever encoding it was sent."""
    if known.strip() == "*":
        return True
    stem = etag[:-1]
    tags = (tag.strip().removeprefix("W/") for tag in known.split(","))
    return any(
        tag == etag or (tag.startswith(f"{stem}-") and tag[len(stem) + 1 : -1] in ENCODINGS) for tag in tags
    )


def _vary(names: tuple[str, ...]) -> tuple[Header, ...]:
    """The header that names what an answer depends on, each once."""
    return (("Vary", ", ".join(dict.fromkeys(names))),) if names else ()


def _cache_control(answer: Answer, environ: Environ) -> str:
    """As the answer says, else: a successful read is the caller's, or everybody's where none is named."""
    if answer.cache_control:
        return answer.cache_control
    if answer.status != 200 or environ["REQUEST_METHOD"] not in READ_METHODS:
        return NO_STORE
    return PRIVATE_REVALIDATE if environ.get("HTTP_AUTHORIZATION") else PUBLIC_REVALIDATE


def _worthwhile(encoding: str, size: int, *, read: bool) -> str:
    """The encoding that a body of some bytes is sent in, "" for none.

    A large one has to wait for its turn, so that only a read can: a write is done when it is answered.
    """
    return encoding if size >= MIN_COMPRESSED_BYTES and (read or size <= FAST_COMPRESSION_BYTES) else ""


def _about_body(body: bytes, content_type: str, etag: str, encoding: str) -> Iterable[Header]:
    """The headers that tell of a body; its length aside."""
    if body:
        yield "Content-Type", content_type
    if encoding:
        yield "Content-Encoding", encoding
    if etag:
        yield "ETag", f'{etag[:-1]}-{encoding}"' if encoding else etag


def _needs_headers_only(environ: Environ, etag: str) -> bool:
    """Whether a read is answered without a body: a HEAD, and what the client has already."""
    known = environ.get("HTTP_IF_NONE_MATCH")
    return environ["REQUEST_METHOD"] == "HEAD" or bool(known and matches(known, etag))


def _encode(body: bytes, encoding: str, environ: Environ) -> bytes:
    """A body in an encoding. Raises BusyError and NeedsThreadPool, for a large one."""
    if not encoding:
        return body
    if len(body) > OFF_LOOP_COMPRESSION_BYTES:
        environ[BUDGET].leave_loop()
    if len(body) <= FAST_COMPRESSION_BYTES:
        return ENCODINGS[encoding](body)
    environ[BUDGET].take_turn()
    return QUICK_ENCODINGS[encoding](body)


def _close(body: bytes | Iterable[bytes]) -> Iterable[bytes]:
    """No body, in place of one that is not sent."""
    close = getattr(body, "close", None)
    if close is not None:
        close()
    return []
