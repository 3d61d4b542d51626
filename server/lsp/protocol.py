"""JSON-RPC messages of the Language Server Protocol.

pygls is not used, because importing it takes 0.4 s and 20 MB.
"""

import logging
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import orjson

log = logging.getLogger("bifolio")

MAX_MESSAGE_BYTES = 64 * 1024 * 1024
MAX_HEADER_BYTES = 64 * 1024

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
    """Raised to respond to a request with an error. The message is meant for the user."""

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
    """Reader of the messages in a byte stream. Skips invalid messages."""

    def __init__(self, stream: BinaryIO, writer: "MessageWriter") -> None:
        self._stream, self._writer = stream, writer

    def read(self) -> Message | None:
        while True:
            length = self._read_length()
            if length is None:
                return None
            data = self._stream.read(length)
            if len(data) < length:
                return None
            message = self._parse(data)
            if message is not None:
                return message

    def _read_length(self) -> int | None:
        """Read a header, and return the length of the body in bytes, or None at the end of the stream."""
        length: int | None = None
        while line := self._stream.readline(MAX_HEADER_BYTES):
            name, _, value = line.partition(b":")
            if name.strip().lower() == b"content-length":
                text = value.strip()
                length = int(text) if text.isdigit() and len(text) < 12 else None
                if length is None or length > MAX_MESSAGE_BYTES:
                    log.warning("a message has an invalid length: %r", text[:40])
                    length = None
            elif not line.strip() and length is not None:
                return length
        return None

    def _parse(self, data: bytes) -> Message | None:
        try:
            found = orjson.loads(data)
        except orjson.JSONDecodeError as error:
            self._refuse(None, PARSE_ERROR, f"the message is not JSON: {error}")
            return None
        if not isinstance(found, dict):
            self._refuse(None, INVALID_REQUEST, "a message must be an object")
            return None
        id_, method = found.get("id"), found.get("method", "")
        if not isinstance(method, str) or not (id_ is None or isinstance(id_, int | str)):
            self._refuse(None, INVALID_REQUEST, "a message needs a method and, for a request, an id")
            return None
        return Message(method, found.get("params"), id_, found.get("result"))

    def _refuse(self, id_: RequestId | None, code: int, message: str) -> None:
        log.warning("an invalid message was skipped: %s", message)
        self._writer.fail(id_, code, message)


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
        """Send a request without waiting for a response."""
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
