"""HTTP responses, from their content to sending.

An `Answer` has the content of a response and its caching rules. `represent` turns it into the response for
one client, with common headers, an entity tag and compression. `send` passes that to the server, or 304 if
the client has the same version.
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
CACHE_TAG = "Cache-Tag"  # types and documents in a response (service.cache_tags)

# Values of Cache-Control. Stored responses must be revalidated before each use.
PUBLIC_REVALIDATE = "public, max-age=0, must-revalidate"
PRIVATE_REVALIDATE = "private, no-cache"
NO_STORE = "no-store"

SECURITY_HEADERS: tuple[Header, ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "SAMEORIGIN"),
)
# In order of preference.
ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: in_brotli(body, 4),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
MIN_COMPRESSED_BYTES = 1024  # Compressing a smaller body saves nothing.
# A larger body is compressed at a lower quality, in a third of the time, and requires a turn.
FAST_COMPRESSION_BYTES = 256 * 1024
# Larger bodies are compressed off the event loop, because that takes some milliseconds.
OFF_LOOP_COMPRESSION_BYTES = 64 * 1024
QUICK_ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: in_brotli(body, 1),
    "gzip": lambda body: gzip.compress(body, 1, mtime=0),
}
# A name and its quality in Accept-Encoding. werkzeug's parser would add 25 ms to every start.
_CODING = re.compile(r"([^\s,;=]+)\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]*)?))?\s*(?:,|$)")
MAX_ACCEPT_CHARS = 200  # Of Accept-Encoding; known clients send some thirty.
_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
BODY_HEADERS = ("Content-Type", "Content-Length", "Content-Encoding")  # omitted from a 304


class Answer(NamedTuple):
    """A response, before it is encoded for one client.

    `body` is complete, or an iterable of parts that is streamed unchanged. `etag` may be left to `represent`.
    `cache_control` is PUBLIC_REVALIDATE, PRIVATE_REVALIDATE, NO_STORE or another value of the header; ""
    leaves it to `represent`. `vary` names the request headers that the response depends on.
    """

    body: bytes | Iterable[bytes]
    status: int = 200
    content_type: str = JSON
    etag: str = ""
    cache_control: str = ""
    vary: tuple[str, ...] = ("Authorization",)
    headers: tuple[Header, ...] = ()


class Representation(NamedTuple):
    """A response as sent to one client. If-None-Match is compared with `etag`, unless that is "".

    `body` is empty if this client needs only the headers and compression would be costly.
    """

    status: str
    headers: tuple[Header, ...]
    body: bytes | Iterable[bytes]
    etag: str


def without(headers: Iterable[Header], *names: str) -> tuple[Header, ...]:
    """Return headers except those with the given names."""
    return tuple(header for header in headers if header[0] not in names)


def represent(answer: Answer, environ: Environ, vary: tuple[str, ...] = ()) -> Representation:
    """Return the response for the client of a request.

    A successful read without an entity tag gets one derived from its bytes. `vary` is added to the response's
    own. Raises BusyError and NeedsThreadPool if a large body must be compressed.
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
    """Send a response, or 304 if the client has it; `more` are headers of this response only."""
    known = environ.get("HTTP_IF_NONE_MATCH")
    if known and shown.etag and matches(known, shown.etag):
        start_response("304 Not Modified", [*without(shown.headers, *BODY_HEADERS), *more])
        return _close(shown.body)
    start_response(shown.status, [*shown.headers, *more])
    if environ["REQUEST_METHOD"] == "HEAD":
        return _close(shown.body)
    return [shown.body] if isinstance(shown.body, bytes) else shown.body


def encoding_for(environ: Environ) -> str:
    """Return the best supported encoding in Accept-Encoding; "" if there is none."""
    accepted = environ.get("HTTP_ACCEPT_ENCODING")
    return _encoding_for(accepted[:MAX_ACCEPT_CHARS]) if accepted else ""


def in_brotli(body: bytes, quality: int) -> bytes:
    """Compress a body with brotli, at a quality from 0 to 11."""
    return bytes(brotli.compress(body, quality=quality))


# Saves 2.7 µs of 10.1 of a repeated read by a browser.
@lru_cache(maxsize=512)
def _encoding_for(accepted: str) -> str:
    qualities = {name: float(quality or 1) for name, quality in _CODING.findall(accepted.lower())}
    default = qualities.get("*", 0)
    return next((name for name in ENCODINGS if qualities.get(name, default) > 0), "")


def matches(known: str, etag: str) -> bool:
    """Whether If-None-Match contains an entity tag, with any encoding."""
    if known.strip() == "*":
        return True
    stem = etag[:-1]
    tags = (tag.strip().removeprefix("W/") for tag in known.split(","))
    return any(
        tag == etag or (tag.startswith(f"{stem}-") and tag[len(stem) + 1 : -1] in ENCODINGS) for tag in tags
    )


def _vary(names: tuple[str, ...]) -> tuple[Header, ...]:
    """Return the Vary header without duplicates; no header if there are no names."""
    return (("Vary", ", ".join(dict.fromkeys(names))),) if names else ()


def _cache_control(answer: Answer, environ: Environ) -> str:
    """Return the Cache-Control of a response: its own, else the default.

    By default, a successful read is private if the request has credentials, and public otherwise. No other
    response is stored.
    """
    if answer.cache_control:
        return answer.cache_control
    if answer.status != 200 or environ["REQUEST_METHOD"] not in READ_METHODS:
        return NO_STORE
    return PRIVATE_REVALIDATE if environ.get("HTTP_AUTHORIZATION") else PUBLIC_REVALIDATE


def _worthwhile(encoding: str, size: int, *, read: bool) -> str:
    """Return the encoding for a body of a given size; "" for none.

    Compressing a large body has to wait for a turn. Only reads can do so: a write is already done.
    """
    return encoding if size >= MIN_COMPRESSED_BYTES and (read or size <= FAST_COMPRESSION_BYTES) else ""


def _about_body(body: bytes, content_type: str, etag: str, encoding: str) -> Iterable[Header]:
    """Yield the headers that describe a body, except Content-Length."""
    if body:
        yield "Content-Type", content_type
    if encoding:
        yield "Content-Encoding", encoding
    if etag:
        yield "ETag", f'{etag[:-1]}-{encoding}"' if encoding else etag


def _needs_headers_only(environ: Environ, etag: str) -> bool:
    """Whether a read needs no body: it is a HEAD, or the client has this version."""
    known = environ.get("HTTP_IF_NONE_MATCH")
    return environ["REQUEST_METHOD"] == "HEAD" or bool(known and matches(known, etag))


def _encode(body: bytes, encoding: str, environ: Environ) -> bytes:
    """Compress a body. Raises BusyError and NeedsThreadPool for a large one."""
    if not encoding:
        return body
    if len(body) > OFF_LOOP_COMPRESSION_BYTES:
        environ[BUDGET].leave_loop()
    if len(body) <= FAST_COMPRESSION_BYTES:
        return ENCODINGS[encoding](body)
    environ[BUDGET].take_turn()
    return QUICK_ENCODINGS[encoding](body)


def _close(body: bytes | Iterable[bytes]) -> Iterable[bytes]:
    """Close a body that is not sent, and return an empty one."""
    close = getattr(body, "close", None)
    if close is not None:
        close()
    return []
