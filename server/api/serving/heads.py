"""Conversion of request heads to WSGI environs, and of response heads to bytes."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from http import HTTPStatus
from io import BytesIO
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from server.api.environ import REFUSED
from server.api.error_response import envelope
from server.api.response import Environ, Header
from server.api.serving.file_body import FileBody
from server.errors import ApiError, BadRequestError, UnauthorizedError

_TARGET = re.compile(rb"[\x21-\x7e\x80-\xff]+")
# Some clients don't percent-encode these characters.
_ESCAPED = re.compile(rb'["<>\\^`{|}]')
_HIGH = re.compile(rb"[\x80-\xff]")
_HOST = re.compile(r"[A-Za-z0-9._~%!$&'()*+;=:\[\]-]*")
_ABSOLUTE = re.compile(rb"https?://([^/?]*)(.*)", re.IGNORECASE)
# These phrases differ between versions of Python.
_PHRASES = {
    413: "Payload Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Entity",
}
_STATUS_LINES = {s.value: f"{s.value} {_PHRASES.get(s.value, s.phrase)}\r\n" for s in HTTPStatus}
MAX_HEAD_BYTES = 128 * 1024  # Larger heads are rejected with status 431.
MAX_HEADERS = 100
MAX_TARGET_BYTES = 65_534  # For path and query. Longer targets get status 414.
# These headers restrict what a request does, so the request is rejected if one of them is not ASCII.
_CONDITIONS = ("If-Match", "Prefer", "Bifolio-After")
# Flask takes 0.5 µs for each comma or semicolon in these headers. A header that is longer than MAX_LIST_CHARS
# is ignored.
_LISTS = ("HTTP_IF_NONE_MATCH", "HTTP_PREFER", "CONTENT_TYPE", "HTTP_ACCESS_CONTROL_REQUEST_HEADERS")
MAX_LIST_CHARS = 4096
MAX_CACHED_NAME_BYTES = 64  # Environ keys for longer header names are not cached.
_HEAD_END = b"\r\n\r\n"
_ENVIRON: Environ = {
    "SCRIPT_NAME": "",
    "SERVER_SOFTWARE": "bifolio",
    "wsgi.errors": sys.stderr,
    "wsgi.file_wrapper": FileBody,
    "wsgi.input": BytesIO(),
    "wsgi.input_terminated": True,
    "wsgi.multiprocess": True,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.url_scheme": "http",
    "wsgi.version": (1, 0),
}


def environ_of_connection(client: Sequence[object], server: Sequence[object]) -> Environ:
    return {
        **_ENVIRON,
        "REMOTE_ADDR": str(client[0]),
        "SERVER_NAME": bracketed(str(server[0])),
        "SERVER_PORT": str(server[1]),
    }


def _rejection(status: int, name: str, message: str) -> bytes:
    body = envelope(status, name, message, {}).body
    assert isinstance(body, bytes)
    return body


# Responses to requests that are rejected before they reach the app, by status.
REFUSALS = {
    400: _rejection(400, "BadRequestError", "This is not a valid HTTP/1.1 request"),
    414: _rejection(414, "URITooLongError", f"The target has more than {MAX_TARGET_BYTES:,} bytes"),
    431: _rejection(
        431,
        "RequestHeaderFieldsTooLargeError",
        f"The head has more than {MAX_HEADERS} headers or {MAX_HEAD_BYTES:,} bytes",
    ),
}


def bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def environ_of(
    method: str, target: bytes, version: str, headers: Iterable[tuple[bytes, bytes]]
) -> Environ | None:
    """Return the WSGI environ of a request, or None if the target is invalid.

    If the headers are invalid, the environ contains the error under the key REFUSED.
    """
    found = _split_target(target)
    if found is None:
        return None
    authority, path, query = found
    environ: Environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": (unquote_to_bytes(path) if b"%" in path else path).decode("latin-1"),
        "QUERY_STRING": query.decode("latin-1"),
        "SERVER_PROTOCOL": f"HTTP/{version}",
    }
    unreadable: list[str] = []
    for name, value in headers:
        key = _key(name) if len(name) <= MAX_CACHED_NAME_BYTES else _key.__wrapped__(name)
        if not key:
            continue
        if not value.isascii():
            unreadable.append(key)
            continue
        text = value.decode()
        environ[key] = f"{environ[key]},{text}" if key in environ else text
    for key in _LISTS:
        if len(environ.get(key, "")) > MAX_LIST_CHARS:
            del environ[key]
    refusal = _refusal(environ, authority, unreadable, version)
    if refusal:
        environ[REFUSED] = refusal
    environ.setdefault("HTTP_HOST", authority)
    return environ


class EncodedHead(NamedTuple):
    """Status line and headers of a response, as bytes."""

    lines: bytes
    has_length: bool
    has_date: bool


# The cache saves 5 of the 45 µs that a repeated request takes.
@lru_cache(maxsize=512)
def encode_head(version: str, status: int, headers: tuple[Header, ...]) -> EncodedHead:
    """Encode a response's head. Raises ValueError if a header contains a line break."""
    text = "".join([f"{name.lower()}: {value}\r\n" for name, value in headers])
    if text.count("\n") != len(headers) or text.count("\r") != len(headers) or "\0" in text:
        raise ValueError("a response header contains a line break")
    text = f"HTTP/{version} {_STATUS_LINES[status]}{text}"
    return EncodedHead(text.encode(), "\ncontent-length: " in text, "\ndate: " in text)


def with_escaped_target(data: bytes) -> bytes:
    """Percent-encode the non-ASCII bytes in a request's target, because some clients send raw UTF-8."""
    line, end, rest = data.partition(b"\n")
    try:
        line.decode()
    except UnicodeDecodeError:
        return data
    return _HIGH.sub(_percent_encode, line) + end + rest


def _percent_encode(match: re.Match[bytes]) -> bytes:
    return b"%%%02X" % match[0][0]


def has_body(environ: Mapping[str, object]) -> bool:
    return environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ


def _split_target(target: bytes) -> tuple[str, bytes, bytes] | None:
    if not _TARGET.fullmatch(target):
        return None
    authority, rest = b"", _ESCAPED.sub(_percent_encode, target.partition(b"#")[0])
    if not rest.startswith(b"/") and rest != b"*":
        absolute = _ABSOLUTE.fullmatch(rest)
        if absolute is None:
            return None
        authority, rest = absolute[1], absolute[2] if absolute[2].startswith(b"/") else b"/" + absolute[2]
    path, _, query = rest.partition(b"?")
    return authority.decode("latin-1"), path, query


def _refusal(environ: Environ, authority: str, unreadable: Sequence[str], version: str) -> ApiError | None:
    if unreadable:  # not ASCII
        if "HTTP_AUTHORIZATION" in unreadable and "HTTP_AUTHORIZATION" not in environ:
            return UnauthorizedError()
        for header in _CONDITIONS:
            if (key := _key(header.encode())) in unreadable and key not in environ:
                return BadRequestError(f"The {header} header contains characters that are not ASCII")
    if environ.get("HTTP_TRANSFER_ENCODING", "chunked").lower() != "chunked":
        return BadRequestError('The Transfer-Encoding header must be "chunked"')
    host = environ.get("HTTP_HOST", authority)
    if "," in host:
        return BadRequestError("A request must have exactly one Host header")
    if not _HOST.fullmatch(host):
        return BadRequestError("The Host header is not a valid host name")
    if not host and "HTTP_HOST" not in environ and version == "1.1":
        return BadRequestError("A request must have a Host header")
    return None


# The cache saves 1.2 µs for a request with eight headers.
@lru_cache(maxsize=512)
def _key(header: bytes) -> str:
    # In WSGI, `X_Name` and `X-Name` have the same key, so a client could use `X_Name` to forge a proxy's
    # header.
    if b"_" in header:
        return ""
    name = header.decode("latin-1").upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


def end_of_heads(data: bytes, count: int) -> int:
    if data.count(_HEAD_END) <= count:
        return len(data)
    at = 0
    for _ in range(count):
        at = data.index(_HEAD_END, at) + len(_HEAD_END)
    return at
