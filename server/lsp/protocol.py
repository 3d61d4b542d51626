"""JSON-RPC messages. The library pygls is not used, because importing it would take 0.4 s and 20 MB."""

import logging
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO, TypeGuard

import orjson

log = logging.getLogger("bifolio")

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024
# Message bodies are read in pieces of this size, so that memory is allocated only for bytes that have
# arrived.
_PIECE_BYTES = 1024 * 1024
_HEADER = re.compile(rb"[A-Za-z-]+[ \t]*:")
# If a message with an invalid header was skipped, its body can precede the next header on the same line.
_LENGTH = re.compile(rb"Content-Length[ \t]*:([^:\r\n]*)\r?\n?\Z", re.I)
# a pair of surrogates, a surrogate without its other half, or any other escape sequence
_ESCAPE = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})|\\.", re.DOTALL)

# error codes
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
NOT_INITIALIZED = -32002
REQUEST_CANCELLED = -32800
REQUEST_FAILED = -32803

Json = dict[str, Any]
RequestId = int | str


class RequestError(Exception):
    """Error response to a request. Its message is shown to the user."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


@dataclass(frozen=True, slots=True)
class Message:
    """A message from the editor. A notification has no `id`, and a response has the method ""."""

    method: str
    params: Any
    id: RequestId | None = None
    result: Any = None


class MessageReader:
    """Reader of the messages in a byte stream. Invalid messages are skipped."""

    def __init__(self, stream: BinaryIO, writer: "MessageWriter") -> None:
        self._stream, self._writer = stream, writer

    def read(self) -> Message | None:
        while True:
            length = self._read_length()
            data = self._read_body(length) if length is not None else None
            if data is None:
                return None
            message = self._parse(data)
            if message is not None:
                return message

    def _read_length(self) -> int | None:
        """Return the length of the next message's body in bytes, or None at the end of the stream."""
        length, is_resyncing, is_empty = None, False, True
        while line := self._stream.readline(MAX_HEADER_BYTES):
            error = ""
            if found := _LENGTH.search(line) if is_resyncing else _LENGTH.match(line):
                length, is_empty = _valid_length(found[1]), False
                if length is None:
                    self._reject(None, INVALID_REQUEST, f"{found[1][:40]!r} is not a valid Content-Length")
                    is_resyncing = True
            elif line.strip():
                is_empty = False
                error = "" if _HEADER.match(line) else f"{line[:40]!r} is not a header"
            elif length is not None:
                return length
            else:
                error = "" if is_empty else "Content-Length is missing"
            if error and not is_resyncing:
                self._reject(None, INVALID_REQUEST, error)
                is_resyncing = True
        return None

    def _read_body(self, length: int) -> bytes | None:
        data = bytearray()
        while len(data) < length:
            piece = self._stream.read(min(length - len(data), _PIECE_BYTES))
            if not piece:
                log.warning("the last message has only %d of %d bytes", len(data), length)
                return None
            data += piece
        return bytes(data)

    def _parse(self, data: bytes) -> Message | None:
        try:
            found = _read_json(data)
        except orjson.JSONDecodeError as error:
            self._reject(None, PARSE_ERROR, f"the message is not JSON: {error}")
            return None
        if not isinstance(found, dict):
            self._reject(None, INVALID_REQUEST, "a message must be an object")
            return None
        id_, method = found.get("id"), found.get("method")
        is_response = "method" not in found
        if not is_id(id_) and id_ is not None:
            self._reject(None, INVALID_REQUEST, "the id of a request must be a number or a string")
            return None
        if not is_response and (not isinstance(method, str) or not method):
            self._reject(id_, INVALID_REQUEST, "the method of a message must be a string")
            return None
        return Message(method or "", found.get("params"), id_, found.get("result"))

    def _reject(self, id_: RequestId | None, code: int, message: str) -> None:
        log.warning("an invalid message was skipped: %s", message)
        self._writer.fail(id_, code, message)


def _valid_length(text: bytes) -> int | None:
    text = text.strip()
    length = int(text) if text.isdigit() and len(text) < 12 else None
    return length if length is not None and length <= MAX_MESSAGE_BYTES else None


def _read_json(data: bytes) -> Any:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return orjson.loads(_ESCAPE.sub(lambda found: rb"\ufffd" if found[1] else found[0], data))


def is_id(value: object) -> TypeGuard[RequestId]:
    return isinstance(value, int | str)


class MessageWriter:
    """Thread-safe writer of messages to the editor."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self._lock = stream, threading.Lock()
        self._next_id = 0
        self.is_closed = False

    def respond(self, id_: RequestId, result: Any) -> None:
        self._write({"id": id_, "result": result})

    def fail(self, id_: RequestId | None, code: int, message: str) -> None:
        self._write({"id": id_, "error": {"code": code, "message": message}})

    def notify(self, method: str, params: Json) -> None:
        self._write({"method": method, "params": params})

    def request(self, method: str, params: Json) -> None:
        with self._lock:
            self._next_id += 1
            id_ = f"bifolio-{self._next_id}"
        self._write({"id": id_, "method": method, "params": params})

    def _write(self, message: Mapping[str, Any]) -> None:
        data = orjson.dumps({"jsonrpc": "2.0", **message}, option=orjson.OPT_NON_STR_KEYS)
        try:
            with self._lock:
                self._stream.write(b"Content-Length: %d\r\n\r\n%b" % (len(data), data))
                self._stream.flush()
        except (OSError, ValueError):  # the editor has closed the stream
            self.is_closed = True
