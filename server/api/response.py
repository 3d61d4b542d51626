"""Encoding and sending of HTTP responses.

An `Answer` contains a response's content and its caching rules. `represent` encodes it for one client: it
compresses the body, and adds the common headers and the entity tag. `send` passes the result to the HTTP
server. If the client has already cached this response, `send` passes a response with the status 304 instead.
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
CACHE_TAG = "Cache-Tag"  # the response header that contains cache tags (service.cache_tags)

# Values for the Cache-Control header. The first two let caches store a response, but they must revalidate it
# before each use.
PUBLIC_REVALIDATE = "public, max-age=0, must-revalidate"
PRIVATE_REVALIDATE = "private, no-cache"
NO_STORE = "no-store"

SECURITY_HEADERS: tuple[Header, ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "SAMEORIGIN"),
)
# The supported content encodings. If a client allows several, the first of them is used.
ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: in_brotli(body, 4),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
MIN_COMPRESSED_BYTES = 1024  # Smaller bodies are not compressed.
# Larger bodies are compressed one at a time, and at a lower quality, which takes a third of the time.
FAST_COMPRESSION_BYTES = 256 * 1024
# Larger bodies are compressed on a thread instead of the event loop, because it takes a few milliseconds.
OFF_LOOP_COMPRESSION_BYTES = 64 * 1024
QUICK_ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: in_brotli(body, 1),
    "gzip": lambda body: gzip.compress(body, 1, mtime=0),
}
# Matches an encoding and its quality in an Accept-Encoding header. Importing werkzeug's parser instead would
# delay each start by 25 ms.
_CODING = re.compile(r"([^\s,;=]+)\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]*)?))?\s*(?:,|$)")
# Accept-Encoding headers are truncated to this length. Known clients send about 30 characters.
MAX_ACCEPT_CHARS = 200
_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
# headers that a 304 response does not contain
BODY_HEADERS = ("Content-Type", "Content-Length", "Content-Encoding")


class Answer(NamedTuple):
    """A response before it is encoded for a client.

    - `body`: the complete body, or an iterable that yields the body in parts. Bodies in parts are not
      compressed.
    - `etag`: the entity tag. If it is "", `represent` computes one.
    - `cache_control`: the value for the Cache-Control header, such as PUBLIC_REVALIDATE, PRIVATE_REVALIDATE
      or NO_STORE. If it is "", `represent` chooses a value.
    - `vary`: the names of the request headers on which the response depends
    """

    body: bytes | Iterable[bytes]
    status: int = 200
    content_type: str = JSON
    etag: str = ""
    cache_control: str = ""
    vary: tuple[str, ...] = ("Authorization",)
    headers: tuple[Header, ...] = ()


class Representation(NamedTuple):
    """A response that is encoded for one client. If `etag` is not "", `send` compares it with the request's
    If-None-Match header.

    If compressing the body would take long but the client needs only the headers, `body` is empty.
    """

    status: str
    headers: tuple[Header, ...]
    body: bytes | Iterable[bytes]
    etag: str


def without(headers: Iterable[Header], *names: str) -> tuple[Header, ...]:
    """Return the headers, except those with the given names."""
    return tuple(header for header in headers if header[0] not in names)


def represent(answer: Answer, environ: Environ, vary: tuple[str, ...] = ()) -> Representation:
    """Encode a response for the client that sent the request.

    If the response to a successful read has no entity tag, the tag is computed from the body. The header
    names in `vary` are added to the answer's own `vary`. Raises BusyError or NeedsThreadPool if a large body
    must be compressed, but this is not possible now.
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
    """Send a response with the additional headers `more`. If the client has already cached this response,
    send the status 304 without a body instead.
    """
    known = environ.get("HTTP_IF_NONE_MATCH")
    if known and shown.etag and matches(known, shown.etag):
        start_response("304 Not Modified", [*without(shown.headers, *BODY_HEADERS), *more])
        return _close(shown.body)
    start_response(shown.status, [*shown.headers, *more])
    if environ["REQUEST_METHOD"] == "HEAD":
        return _close(shown.body)
    return [shown.body] if isinstance(shown.body, bytes) else shown.body


def encoding_for(environ: Environ) -> str:
    """Return the best supported content encoding that the request's Accept-Encoding header allows. Returns ""
    if the header does not allow compression.
    """
    accepted = environ.get("HTTP_ACCEPT_ENCODING")
    return _encoding_for(accepted[:MAX_ACCEPT_CHARS]) if accepted else ""


def in_brotli(body: bytes, quality: int) -> bytes:
    """Compress a body with brotli. `quality` is a number from 0 (fastest) to 11 (smallest result)."""
    return bytes(brotli.compress(body, quality=quality))


# The cache saves 2.7 of the 10.1 µs for a browser's repeated read.
@lru_cache(maxsize=512)
def _encoding_for(accepted: str) -> str:
    qualities = {name: float(quality or 1) for name, quality in _CODING.findall(accepted.lower())}
    default = qualities.get("*", 0)
    return next((name for name in ENCODINGS if qualities.get(name, default) > 0), "")


def matches(known: str, etag: str) -> bool:
    """Whether an If-None-Match header contains an entity tag. A tag in the header also matches if it ends
    with a content encoding, such as `"abc-br"`.
    """
    if known.strip() == "*":
        return True
    # The header can be a list of tags. It is not split, because this would take 10 ms for a long list. A
    # string search is sufficient, because the tag includes its quotes.
    return etag in known or any(f'{etag[:-1]}-{encoding}"' in known for encoding in ENCODINGS)


def _vary(names: tuple[str, ...]) -> tuple[Header, ...]:
    """Return a Vary header that lists these names without duplicates. If there are no names, return no
    header.
    """
    return (("Vary", ", ".join(dict.fromkeys(names))),) if names else ()


def _cache_control(answer: Answer, environ: Environ) -> str:
    """Return the value for a response's Cache-Control header.

    If the answer does not specify a value, the response to a successful read is private if the request
    contains credentials, and public otherwise. All other responses must not be stored.
    """
    if answer.cache_control:
        return answer.cache_control
    if answer.status != 200 or environ["REQUEST_METHOD"] not in READ_METHODS:
        return NO_STORE
    return PRIVATE_REVALIDATE if environ.get("HTTP_AUTHORIZATION") else PUBLIC_REVALIDATE


def _worthwhile(encoding: str, size: int, *, read: bool) -> str:
    """Return the encoding for a body of this size, or "" if the body should not be compressed.

    Large bodies are compressed only in responses to reads, because their compression may have to wait or may
    fail. After a write, the compression must not fail, because the change has already been saved.
    """
    return encoding if size >= MIN_COMPRESSED_BYTES and (read or size <= FAST_COMPRESSION_BYTES) else ""


def _about_body(body: bytes, content_type: str, etag: str, encoding: str) -> Iterable[Header]:
    """Yield the headers for a body's type, encoding and entity tag. The header for its length is not
    included.
    """
    if body:
        yield "Content-Type", content_type
    if encoding:
        yield "Content-Encoding", encoding
    if etag:
        yield "ETag", f'{etag[:-1]}-{encoding}"' if encoding else etag


def _needs_headers_only(environ: Environ, etag: str) -> bool:
    """Whether the client needs only the headers, because the request is a HEAD request or the client already
    has the response.
    """
    known = environ.get("HTTP_IF_NONE_MATCH")
    return environ["REQUEST_METHOD"] == "HEAD" or bool(known and matches(known, etag))


def _encode(body: bytes, encoding: str, environ: Environ) -> bytes:
    """Compress a body, unless `encoding` is "". Raises BusyError or NeedsThreadPool if the body is large and
    can't be compressed now.
    """
    if not encoding:
        return body
    if len(body) > OFF_LOOP_COMPRESSION_BYTES:
        environ[BUDGET].leave_loop()
    if len(body) <= FAST_COMPRESSION_BYTES:
        return ENCODINGS[encoding](body)
    environ[BUDGET].take_turn()
    return QUICK_ENCODINGS[encoding](body)


def _close(body: bytes | Iterable[bytes]) -> Iterable[bytes]:
    """Close a response body that will not be sent. Return an empty body."""
    close = getattr(body, "close", None)
    if close is not None:
        close()
    return []
