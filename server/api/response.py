"""Encoding of HTTP responses."""

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
CACHE_TAG = "Cache-Tag"  # response header

# With the first two values, caches may store a response, but must revalidate it before each use.
PUBLIC_REVALIDATE = "public, max-age=0, must-revalidate"
PRIVATE_REVALIDATE = "private, no-cache"
NO_STORE = "no-store"

SECURITY_HEADERS: tuple[Header, ...] = (
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("X-Frame-Options", "SAMEORIGIN"),
)
# The supported content encodings, best first.
ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: compress_brotli(body, 4),
    "gzip": lambda body: gzip.compress(body, 6, mtime=0),
}
MIN_COMPRESSED_BYTES = 1024  # Smaller bodies are not compressed.
# Larger bodies are compressed one at a time, at a lower quality that takes a third of the time.
FAST_COMPRESSION_BYTES = 256 * 1024
# Larger bodies are compressed on a thread, because compressing them takes a few milliseconds.
OFF_LOOP_COMPRESSION_BYTES = 64 * 1024
QUICK_ENCODINGS: Mapping[str, Callable[[bytes], bytes]] = {
    "br": lambda body: compress_brotli(body, 1),
    "gzip": lambda body: gzip.compress(body, 1, mtime=0),
}
# Matches an encoding and its quality in an Accept-Encoding header. Importing werkzeug's parser instead would
# add 25 ms to server startup.
_CODING = re.compile(r"([^\s,;=]+)\s*(?:;\s*q\s*=\s*([01](?:\.[0-9]*)?))?\s*(?:,|$)")
# Longer Accept-Encoding headers are truncated; known clients send about 30 characters.
MAX_ACCEPT_CHARS = 200
_STATUS = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}
BODY_HEADERS = ("Content-Type", "Content-Length", "Content-Encoding")


class Answer(NamedTuple):
    """A response that has not been encoded yet.

    - `body`: the body as bytes, or an iterable of parts. A body in parts is not compressed.
    - `etag`: the entity tag. If it is "", it is computed from the body.
    - `vary`: the request headers on which the response depends.
    """

    body: bytes | Iterable[bytes]
    status: int = 200
    content_type: str = JSON
    etag: str = ""
    cache_control: str = ""
    vary: tuple[str, ...] = ("Authorization",)
    headers: tuple[Header, ...] = ()


class Representation(NamedTuple):
    """A response that has been encoded. The body can be empty if only the headers are needed."""

    status: str
    headers: tuple[Header, ...]
    body: bytes | Iterable[bytes]
    etag: str


def without(headers: Iterable[Header], *names: str) -> tuple[Header, ...]:
    return tuple(header for header in headers if header[0] not in names)


def represent(answer: Answer, environ: Environ, vary: tuple[str, ...] = ()) -> Representation:
    """Encode a response. Successful responses to reads get an entity tag.

    Raises NeedsThreadPool if a large body can't be compressed on this thread, and BusyError if too many
    costly requests are already waiting.
    """
    body, etag = answer.body if answer.status != 204 else b"", answer.etag
    read = answer.status == 200 and environ["REQUEST_METHOD"] in READ_METHODS
    headers = [*answer.headers, *SECURITY_HEADERS, ("Cache-Control", _cache_control(answer, environ))]
    if isinstance(body, bytes) and answer.status != 204:
        if not etag and read:
            etag = tag_of_bytes(body)
        encoding = _useful_encoding(best_encoding(environ), len(body), is_read=read)
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
    representation: Representation,
    environ: Environ,
    start_response: StartResponse,
    extra_headers: Iterable[Header] = (),
) -> Iterable[bytes]:
    """Send a response. If the client already has this response, send status 304 without a body."""
    known = environ.get("HTTP_IF_NONE_MATCH")
    if known and representation.etag and etag_matches(known, representation.etag):
        start_response("304 Not Modified", [*without(representation.headers, *BODY_HEADERS), *extra_headers])
        return _close(representation.body)
    start_response(representation.status, [*representation.headers, *extra_headers])
    if environ["REQUEST_METHOD"] == "HEAD":
        return _close(representation.body)
    return [representation.body] if isinstance(representation.body, bytes) else representation.body


def best_encoding(environ: Environ) -> str:
    accepted = environ.get("HTTP_ACCEPT_ENCODING")
    return _encoding_for(accepted[:MAX_ACCEPT_CHARS]) if accepted else ""


def compress_brotli(body: bytes, quality: int) -> bytes:
    return bytes(brotli.compress(body, quality=quality))


# The cache saves 2.7 of the 10.1 µs that a browser's repeated read takes.
@lru_cache(maxsize=512)
def _encoding_for(accepted: str) -> str:
    qualities = {name: float(quality or 1) for name, quality in _CODING.findall(accepted.lower())}
    default = qualities.get("*", 0)
    return next((name for name in ENCODINGS if qualities.get(name, default) > 0), "")


def etag_matches(if_none_match: str, etag: str) -> bool:
    if if_none_match.strip() == "*":
        return True
    # A string search is correct, because the tag includes its quotes. Splitting a long list would take 10 ms.
    return etag in if_none_match or any(f'{etag[:-1]}-{encoding}"' in if_none_match for encoding in ENCODINGS)


def _vary(names: tuple[str, ...]) -> tuple[Header, ...]:
    return (("Vary", ", ".join(dict.fromkeys(names))),) if names else ()


def _cache_control(answer: Answer, environ: Environ) -> str:
    if answer.cache_control:
        return answer.cache_control
    if answer.status != 200 or environ["REQUEST_METHOD"] not in READ_METHODS:
        return NO_STORE
    return PRIVATE_REVALIDATE if environ.get("HTTP_AUTHORIZATION") else PUBLIC_REVALIDATE


def _useful_encoding(encoding: str, size: int, *, is_read: bool) -> str:
    """Return the encoding to use for a body, or "" if the body must not be compressed.

    Small bodies are not compressed, nor are large responses to writes, because a failed compression would
    look like a failed write.
    """
    return encoding if size >= MIN_COMPRESSED_BYTES and (is_read or size <= FAST_COMPRESSION_BYTES) else ""


def _about_body(body: bytes, content_type: str, etag: str, encoding: str) -> Iterable[Header]:
    if body:
        yield "Content-Type", content_type
    if encoding:
        yield "Content-Encoding", encoding
    if etag:
        yield "ETag", f'{etag[:-1]}-{encoding}"' if encoding else etag


def _needs_headers_only(environ: Environ, etag: str) -> bool:
    known = environ.get("HTTP_IF_NONE_MATCH")
    return environ["REQUEST_METHOD"] == "HEAD" or bool(known and etag_matches(known, etag))


def _encode(body: bytes, encoding: str, environ: Environ) -> bytes:
    if not encoding:
        return body
    if len(body) > OFF_LOOP_COMPRESSION_BYTES:
        environ[BUDGET].leave_loop()
    if len(body) <= FAST_COMPRESSION_BYTES:
        return ENCODINGS[encoding](body)
    environ[BUDGET].take_turn()
    return QUICK_ENCODINGS[encoding](body)


def _close(body: bytes | Iterable[bytes]) -> Iterable[bytes]:
    close = getattr(body, "close", None)
    if close is not None:
        close()
    return []
