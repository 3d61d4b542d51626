"""HTTP/1.1 on a single connection.

A client can send requests before it has received the previous response (pipelining). Such a request waits
until the client has read most of the previous response.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Protocol

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from server.api.environ import REFUSED
from server.api.response import JSON, Environ, Header
from server.api.serving.heads import (
    MAX_HEAD_BYTES,
    MAX_HEADERS,
    MAX_TARGET_BYTES,
    REFUSALS,
    EncodedHead,
    bracketed,
    encode_head,
    end_of_heads,
    environ_of,
    environ_of_connection,
    has_body,
    with_escaped_target,
)
from server.api.serving.sockets import unacknowledged_bytes_of
from server.errors import BadRequestError

HEAD_TIMEOUT_S = 30.0  # Maximum time for a request's head, and between two requests.
MAX_PIPELINED_REQUESTS = 64  # Further requests are not parsed yet.
MAX_QUEUED_BYTES = 64 * 1024  # Reading pauses if more bytes have arrived after the current request.
MAX_UNREAD_BYTES = 256 * 1024  # Reading pauses if more bytes of a body are unprocessed.
# If an unneeded body is longer than this, the connection is closed, and the body is not read.
MAX_DISCARDED_BYTES = 64 * 1024
MAX_CHUNK_OVERHEAD_BYTES = 64 * 1024  # Limit for the bytes of a chunked body that are not content.
FREE_CHUNK_BYTES = 16  # For each chunk, this much overhead (its size and line ends) is not counted.
READ_BYTES = 64 * 1024  # Size of the read buffer.
MAX_CACHED_HEADS, MAX_CACHED_HEAD_BYTES = 512, 1024  # Limits for the cache of parsed requests.
LINGER_TIMEOUT_S = 2.0  # How long a closing connection continues to read.
STALL_TIMEOUT_S = 60.0  # How long a client may go without reading any of a response.
_BODILESS_STATUSES = (204, 304)
_INCOMPLETE_BODY = "The request body is incomplete, or its chunks are malformed"


class Server(Protocol):
    """The server that a connection belongs to.

    `heads` caches the WSGI environs of requests without a body.
    """

    # A request that is cached takes 40 µs instead of 50.
    heads: dict[bytes, Environ]
    buffer: memoryview  # shared by all connections, because bytes are parsed right after they are read
    date: bytes  # the current Date header
    is_shutting_down: bool  # whether each connection closes after its next response

    def opened(self, connection: "Connection") -> None: ...

    def closed(self, connection: "Connection") -> None: ...

    def handle(self, exchange: "Exchange") -> None: ...

    def postpone(self, connection: "Connection") -> None:
        """Call the connection's `advance` method in a later iteration of the event loop."""


class _InvalidHeadError(Exception):
    """Error in a request's head. The argument is the HTTP status of the response."""


class Connection(asyncio.BufferedProtocol):
    """A client's connection to the server."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.name = self.address = ""  # with and without the port
        self.is_open = True
        self.loop = asyncio.get_running_loop()
        self._since = self.loop.time()  # when the connection started to wait for the client
        self._parser: HttpRequestParser | None = HttpRequestParser(self)
        self._target = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._overhead = 0  # bytes of the current chunked body that are not content
        self._in_head = False  # whether part of a head has arrived
        self._parsed: list[Environ] = []  # requests in the bytes that were read last
        self._receiving: Exchange | None = None  # the request whose body is still arriving
        self._waiting: deque[Exchange] = deque()
        self._unparsed = b""  # read, but not parsed because the queue was full
        self._queued_bytes = 0  # number of bytes that arrived after the first request in `_waiting`
        self._is_paused = False
        self._turn: Exchange | None = None  # the request whose response is being computed or sent
        self._advancing = self._is_postponed = False
        self._is_last = False  # whether to ignore further requests
        # Status for a rejected head, or 0. Sent after the responses to earlier requests.
        self._refusal = 0
        self._lingers = False
        self._unacknowledged_bytes, self._stalled_since = 0, 0.0
        self._drained: asyncio.Future[None] | None = None  # set while the write buffer is full

    # --- called by asyncio ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        client: Sequence[object] = transport.get_extra_info("peername") or ("", 0)
        self.address = str(client[0])
        self.name = f"{bracketed(self.address)}:{client[1]}"
        self._environ = environ_of_connection(client, transport.get_extra_info("sockname") or ("", 0))
        self.server.opened(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        # All connections can share one buffer, because asyncio calls `buffer_updated` before it reads from
        # another connection.
        return self.server.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._lingers or (self._is_last and self._receiving is None):
            return
        data = bytes(self.server.buffer[:nbytes])
        queued = self._queued_bytes if self._waiting else 0
        begins = not self._in_head and self._receiving is None
        if begins and not self._waiting and (known := self.server.heads.get(data)) is not None:
            self._hand_over(known, "1.1", keeps_alive=True).complete()
            self._receiving = None
        else:
            self._unparsed += data
            self._parse_requests()
        self._advance()
        if self._waiting or self._unparsed or self._receiving is not None:
            self._queued_bytes = queued + nbytes
            self.update_reading()

    def eof_received(self) -> bool:
        self._leave()
        return not self._lingers and (self._turn is not None or bool(self._waiting))

    def connection_lost(self, error: Exception | None) -> None:
        self.is_open = False
        self._parser = None  # breaks a reference cycle
        self.resume_writing()
        self._leave()
        self._waiting.clear()
        self._unparsed, self._turn = b"", None  # breaks another cycle
        self.server.closed(self)

    def pause_writing(self) -> None:
        self._drained = self.loop.create_future()

    def resume_writing(self) -> None:
        if self._drained is not None:
            self._drained.set_result(None)
            self._drained = None
        if (self._waiting or self._unparsed) and self.is_open:
            # The transport is still writing, and `_advance` could close it.
            self.loop.call_soon(self._advance)

    # --- called by the parser --------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._is_last:
            raise _InvalidHeadError(400)
        self._target, self._headers, self._in_head = b"", [], True

    def on_url(self, part: bytes) -> None:
        self._target += part
        if len(self._target) > MAX_TARGET_BYTES:
            raise _InvalidHeadError(414)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._receiving is not None:
            raise _InvalidHeadError(400)
        if len(self._headers) >= MAX_HEADERS or len(name) > MAX_TARGET_BYTES:
            raise _InvalidHeadError(431)
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        parser = self._parser
        assert parser is not None
        self._head_bytes = 0
        version = parser.get_http_version()
        environ = environ_of(parser.get_method().decode(), self._target, version, self._headers)
        if environ is None or version not in ("1.1", "1.0") or environ["REQUEST_METHOD"] == "CONNECT":
            raise _InvalidHeadError(400)
        if version == "1.0" and "HTTP_TRANSFER_ENCODING" in environ:
            raise _InvalidHeadError(400)
        if parser.should_upgrade():
            return
        self._in_head = False
        self._target, self._headers = b"", []  # Frees memory while the connection is idle.
        self._parsed.append(environ)
        self._hand_over(environ, version, keeps_alive=parser.should_keep_alive())

    def on_body(self, part: bytes) -> None:
        self._overhead = max(0, self._overhead - len(part) - FREE_CHUNK_BYTES)
        if self._receiving is not None:
            self._receiving.add(part)

    def on_message_complete(self) -> None:
        self._overhead = 0
        if self._receiving is not None:
            self._receiving.complete()
            self._receiving = None

    # --- called by the server and by exchanges -----------------------------------------------------

    @property
    def unacknowledged_bytes(self) -> int:
        return self._transport.get_write_buffer_size() + unacknowledged_bytes_of(
            self._transport.get_extra_info("socket")
        )

    def write(self, data: bytes | memoryview) -> None:
        if self.is_open and not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> bool:
        """Wait until there is room in the write buffer. Return False if the client has disconnected."""
        if self._drained is not None:
            await self._drained
        return self.is_open and not self._transport.is_closing()

    def update_reading(self) -> None:
        behind = bool(self._waiting) and (self._drained is not None or self._queued_bytes > MAX_QUEUED_BYTES)
        paused = (
            behind
            or bool(self._unparsed)
            or (self._receiving is not None and self._receiving.has_much_unread)
        )
        if paused != self._is_paused and self.is_open and not self._transport.is_closing():
            self._is_paused = paused
            self._transport.pause_reading() if paused else self._transport.resume_reading()

    def finish(self, exchange: "Exchange", *, close: bool) -> None:
        self._turn = None
        if close:
            self._close()
            return
        self._since = self.loop.time()
        self._advance()

    def close_if_idle(self) -> None:
        if self._turn is None and not self._waiting and not self._in_head:
            self._close()

    @property
    def idle_since(self) -> float | None:
        has_request = self._turn is not None or bool(self._waiting)
        is_waiting = self._receiving is not None or not has_request
        return self._since if is_waiting and not self._lingers else None

    def close_after_sending(self) -> None:
        """Close the connection once all queued bytes have been sent, even if a request is incomplete."""
        self._transport.close()

    def abort(self) -> None:
        """Close the connection immediately. Unsent bytes are lost."""
        if self.is_open:  # asyncio can't abort a closed transport.
            self._transport.abort()

    def close_if_stalled(self, now: float) -> None:
        if self._transport.get_write_buffer_size():
            if (unacknowledged := self.unacknowledged_bytes) != self._unacknowledged_bytes:
                self._unacknowledged_bytes, self._stalled_since = unacknowledged, now
            elif now - self._stalled_since > STALL_TIMEOUT_S:
                self.abort()
        elif self._lingers:
            if now - self._since > LINGER_TIMEOUT_S:
                self.abort()
        elif self._turn is None and not self._waiting and now - self._since > HEAD_TIMEOUT_S:
            self.close_after_sending()

    # --- internal -----------------------------------------------------------------------------------

    def _parse_requests(self) -> None:
        while self._unparsed and len(self._waiting) < MAX_PIPELINED_REQUESTS:
            end = end_of_heads(self._unparsed, MAX_PIPELINED_REQUESTS - len(self._waiting))
            data, self._unparsed = self._unparsed[:end], self._unparsed[end:]
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        begins = not self._in_head and self._receiving is None
        if self._receiving is None:
            self._head_bytes += len(data)
        else:
            self._overhead += len(data)
        try:
            self._parse(data if not begins or data.isascii() else with_escaped_target(data))
            if begins:
                self._cache_head(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self._reject(431)
            elif self._overhead > MAX_CHUNK_OVERHEAD_BYTES:
                self._reject(400)
        except HttpParserError as error:
            cause = error.__context__
            self._reject(cause.args[0] if isinstance(cause, _InvalidHeadError) else 400)
        self._parsed = []

    def _hand_over(self, environ: Environ, version: str, *, keeps_alive: bool) -> "Exchange":
        exchange = Exchange(self, {**self._environ, **environ}, version, keeps_alive=keeps_alive)
        self._is_last = not keeps_alive
        self._receiving = exchange
        self._waiting.append(exchange)
        return exchange

    def _cache_head(self, data: bytes) -> None:
        if len(self._parsed) != 1 or len(data) > MAX_CACHED_HEAD_BYTES:
            return
        (environ,) = self._parsed
        is_complete = not self._in_head and self._receiving is None
        if self._is_last or not is_complete or environ["SERVER_PROTOCOL"] != "HTTP/1.1":
            return
        if not has_body(environ) and REFUSED not in environ and "HTTP_EXPECT" not in environ:
            if len(self.server.heads) >= MAX_CACHED_HEADS:
                self.server.heads.clear()
            self.server.heads[data] = environ

    def advance(self) -> None:
        self._is_postponed = False
        self._advance()

    def _advance(self) -> None:
        """Handle the next request if the client has read most of the previous response."""
        if self._advancing or self._is_postponed:
            return
        self._advancing = True
        try:
            if self._can_advance:
                self._turn = exchange = self._waiting.popleft()
                self.server.handle(exchange)
        finally:
            self._advancing = False
        self._parse_requests()
        if self._can_advance:
            self._is_postponed = True
            self.server.postpone(self)
        if self._is_paused:
            self.update_reading()
        if self._turn is None and self._is_last and not self._waiting:
            self._close()

    @property
    def _can_advance(self) -> bool:
        return bool(self._waiting) and self._turn is None and self._drained is None and self.is_open

    def _leave(self) -> None:
        self._is_last = True
        if self._receiving is not None:
            self._receiving.break_off()
            self._receiving = None
        for exchange in (self._turn, *self._waiting):
            if exchange is not None:
                exchange.client_left()

    def _parse(self, data: bytes) -> None:
        while data:
            assert self._parser is not None
            try:
                self._parser.feed_data(data)
                return
            # Other protocols are not supported, but httptools does not parse the body of a request with an
            # `Upgrade` header. The head is therefore parsed again without that header.
            except HttpParserUpgrade as upgrade:
                method = self._parser.get_method()
                version = self._parser.get_http_version().encode()
                lines = [b"%s: %s" % header for header in self._headers if header[0].lower() != b"upgrade"]
                head = [b"%s %s HTTP/%s" % (method, self._target, version), *lines, b"", b""]
                self._parser = HttpRequestParser(self)
                self._parser.feed_data(b"\r\n".join(head))
                data = data[upgrade.args[0] :]

    def _reject(self, status: int) -> None:
        if self._is_last and self._receiving is None:
            return
        self._is_last = True
        if self._receiving is None:
            self._refusal = status
            return
        self._receiving.break_off()

    def _close(self) -> None:
        self._is_last = True
        self._waiting.clear()
        self._unparsed = b""
        if not self.is_open or self._lingers or self._transport.is_closing():
            return
        if self._refusal:
            body = REFUSALS[self._refusal]
            length = ("Content-Length", str(len(body)))
            headers = (("Connection", "close"), ("Content-Type", JSON), length)
            head = encode_head("1.1", self._refusal, headers)
            self.write(b"%s%s\r\n%s" % (head.lines, self.server.date, body))
        # Continue reading for a while. Closing a socket with unread data can reset the connection before the
        # client has received the response.
        if self._refusal or self._receiving is not None:
            self._lingers, self._since = True, self.loop.time()
            self._transport.resume_reading()
            self._transport.write_eof()
        else:
            self._transport.close()


class Exchange:
    """A request whose head has been received, and its response."""

    # Defaults that rarely change. Setting them in `__init__` would take 0.5 µs for each request.
    has_client_left = False  # whether the client has disconnected
    on_client_left: Callable[[], None] | None = None  # called when the client disconnects
    _received = _discards = _ignores = _chunked = _closes = _is_read = _is_broken_off = False
    _body: bytearray | None = None  # received, but not read yet
    _unread = 0
    _reader: asyncio.Future[None] | None = None

    def __init__(self, connection: Connection, environ: Environ, version: str, *, keeps_alive: bool) -> None:
        self.connection, self.environ = connection, environ
        self._version, self._keeps_alive = version, keeps_alive

    @property
    def name(self) -> str:
        return self.connection.name

    # --- the body of the request -------------------------------------------------------------------

    def add(self, part: bytes) -> None:
        self._unread += len(part)
        if self._discards:
            if self._unread > MAX_DISCARDED_BYTES:
                self.connection.finish(self, close=True)
            return
        if not self._ignores:
            if self._body is None:
                self._body = bytearray()
            self._body += part
        self._wake()

    def ignore_body(self) -> None:
        self._ignores, self._body = True, None

    def complete(self) -> None:
        self._received = True
        self._wake()

    def break_off(self) -> None:
        """Stop receiving the body, which is malformed or will never be complete."""
        self._keeps_alive = False
        self._is_broken_off = True
        self._wake()

    async def read(self) -> bytes:
        """Return the next bytes of the body, or b"" at its end.

        Raises BadRequestError if the body is malformed, or if the client has disconnected.
        """
        continues = self._expects_continue and not self._received
        self._is_read = True
        if continues:
            self.connection.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        while not self._body:
            if self._is_broken_off:
                # Always a new error. A stored one would refer to this exchange through its traceback, and
                # this cycle would keep the body in memory until the garbage collector runs.
                raise BadRequestError(_INCOMPLETE_BODY)
            if self._received:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        data = bytes(self._body)
        self._body, self._unread = None, 0
        self.connection.update_reading()
        return data

    @property
    def has_much_unread(self) -> bool:
        return self._unread > MAX_UNREAD_BYTES and not self._discards

    @property
    def _expects_continue(self) -> bool:
        expects = self.environ.get("HTTP_EXPECT", "").lower() == "100-continue"
        return expects and self._version == "1.1" and not self._is_read

    def client_left(self) -> None:
        self.has_client_left = True
        call, self.on_client_left = self.on_client_left, None
        if call is not None:
            call()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # --- the response --------------------------------------------------------------------------------

    def respond(self, status: int, headers: Sequence[Header], body: bytes) -> None:
        """Send a response. Raises ValueError if a header contains a line break."""
        head = encode_head(self._version, status, tuple(headers))
        more = b""
        sends_body = status not in _BODILESS_STATUSES and self.environ["REQUEST_METHOD"] != "HEAD"
        if sends_body and not head.has_length:
            more = b"content-length: %d\r\n" % len(body)
        self.connection.write(self._complete_head(head, more) + body)
        self._finish()

    def send_head(self, status: int, headers: Sequence[Header]) -> None:
        head = encode_head(self._version, status, tuple(headers))
        if not head.has_length:
            self._chunked = self._version == "1.1"
            self._keeps_alive = self._keeps_alive and self._chunked
        self.connection.write(
            self._complete_head(head, b"transfer-encoding: chunked\r\n" if self._chunked else b"")
        )

    def send(self, data: bytes | memoryview) -> int:
        if data:
            self.connection.write(b"%X\r\n%s\r\n" % (len(data), data) if self._chunked else data)
        return len(data)

    def end(self) -> None:
        if self._chunked:
            self.connection.write(b"0\r\n\r\n")
        self._finish()

    def abort(self) -> None:
        """Close the connection, so that the client notices that the response is incomplete."""
        self.connection.abort()

    def _complete_head(self, head: EncodedHead, more: bytes) -> bytes:
        server = self.connection.server
        self._closes = not self._keeps_alive or server.is_shutting_down or self._should_close_early()
        if self._closes != (self._version == "1.0"):
            more = b"connection: %s\r\n%s" % (b"close" if self._closes else b"keep-alive", more)
        date = b"" if head.has_date else server.date
        return b"%sserver: bifolio\r\n%s%s\r\n" % (head.lines, more, date)

    def _should_close_early(self) -> bool:
        if self._received:
            return False
        length = self.environ.get("CONTENT_LENGTH", "0")
        return self._expects_continue or self._is_read or int(length) > MAX_DISCARDED_BYTES

    def _finish(self) -> None:
        if not self._received:
            self._discards, self._unread, self._body = True, 0, None
            self.connection.update_reading()
        self.connection.finish(self, close=self._closes)
