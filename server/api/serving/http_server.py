"""A process's HTTP server: an event loop that calls a WSGI app.

Short reads run on the event loop, and long reads run on two threads. Requests that block run in thread pools.
"""

import asyncio
import heapq
import logging
import resource
import signal
import socket
import time
import weakref
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from contextlib import suppress
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from server.api.entrance import Entrance
from server.api.environ import ACCOUNTS, CLIENT, COSTLY, GONE, IN_PLACE, NO_TURN, ON_LOOP, REFUSED, STREAMS
from server.api.monitoring.request_counts import Observer
from server.api.response import Environ, Header
from server.api.serving import connection
from server.api.serving.bodies import SMALL_BODY_BYTES, Receiver
from server.api.serving.client_threads import ClientThreads
from server.api.serving.connection import READ_BYTES, Connection, Exchange
from server.api.serving.heads import has_body
from server.api.serving.pipelining import PipelineTurns
from server.api.serving.sending import SMALL_BYTES, LargeBodies, length_of, refuse, send_body
from server.api.serving.sockets import Acceptor
from server.bounded import network_of
from server.errors import ApiError, ClientGone, NeedsThreadPool, QueueError
from server.events.hub import Hub
from server.events.stream import Stream

log = logging.getLogger("bifolio")
T = TypeVar("T")

COMPUTING_THREADS = 2  # At least two, because a costly read can occupy one of them.
# Number of threads in each pool for work that may block. Costly reads use up to nine of them
# (server.index.budget), and password checks up to six (server.auth).
WAITING_THREADS = 24
RESERVED_THREADS = 6  # Threads in each pool that one client must leave free for others.
IN_PLACE_METHODS = ("GET", "HEAD", "OPTIONS")
CLIENT_GONE_STATUS = 499  # logged if the client has disconnected
# Delay before a request is rejected because of overload. The delay occupies no thread.
REFUSAL_PAUSE_S = 0.5
# Limit for each process. When it is reached, idle connections are closed (`Connections.close_idle`).
MAX_CONNECTIONS = 4096
CLOSED_AT_ONCE = 64  # More than one, because finding idle connections takes milliseconds.
RESERVED_FILES = 200  # File descriptors reserved for purposes other than connections.
SHUTDOWN_GRACE_S = 1.0  # How long responses contain `Connection: close` before idle connections are closed.
BACKLOG_CONNECTIONS = 1024  # Limit for connections that are waiting to be accepted.
STALL_CHECK_INTERVAL_S = 1.0
# Larger bodies that consist of blocks, such as files, are not joined in memory.
MAX_JOINED_BYTES = 1024 * 1024


class Connections:
    """A process's open connections, by the client's address and port."""

    def __init__(self) -> None:
        self._open: dict[str, Connection] = {}

    def add(self, connection: Connection) -> None:
        self._open[connection.name] = connection

    def remove(self, connection: Connection) -> None:
        self._open.pop(connection.name, None)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def unacknowledged_bytes(self, clients: Collection[str]) -> dict[str, int]:
        """Return the number of bytes that each connected client has not acknowledged. Thread-safe."""
        found = {}
        for client in clients:
            one = self._open.get(client)
            with suppress(OSError, ValueError):  # The connection may be closing.
                if one is not None:
                    found[client] = one.unacknowledged_bytes
        return found

    def close_idle(self) -> None:
        """Close the longest-idle connections of the client with the most connections."""
        clients = {address: network_of(address) for address in {one.address for one in self}}
        by_client: dict[str, list[Connection]] = {}
        for one in self:
            by_client.setdefault(clients[one.address], []).append(one)
        waiting: list[tuple[float, Connection]] = []
        for one in max(by_client.values(), key=len, default=[]):
            if (since := one.idle_since) is not None:
                waiting.append((since, one))
        for _, one in heapq.nsmallest(CLOSED_AT_ONCE, waiting, key=lambda found: found[0]):
            one.close_after_sending()

    def disconnect(self, clients: Collection[str]) -> None:
        """Close the clients' connections immediately. Unsent bytes are lost. Thread-safe."""
        for client in clients:
            if one := self._open.get(client):
                one.loop.call_soon_threadsafe(one.abort)


class _Response(NamedTuple):
    status: int
    headers: list[Header]
    body: bytes | Stream | Iterable[bytes]


class _PoolReasons(NamedTuple):
    """Reasons why a request can't run on the event loop."""

    # Not the exception itself, because its traceback would keep in memory everything that was rendered.
    is_costly: bool
    needs_accounts: bool
    waits_long: bool


class HttpServer:
    """HTTP server for a WSGI app. Processes can share its listening socket."""

    def __init__(
        self,
        app: Entrance,
        listener: socket.socket,
        folder: Callable[[], Path],
        hub: Hub,
        observer: Observer,
        connections: Connections,
    ) -> None:
        self._app, self._listener, self._hub, self._observer = app, listener, hub, observer
        self._connections = connections
        self.is_shutting_down = False
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.date = b""
        self.heads: dict[bytes, Environ] = {}
        self._receiver, self._large = Receiver(folder), LargeBodies(folder)
        self._computing = ClientThreads(COMPUTING_THREADS, "read", reserved=0)
        # Separate pools, so that waiting for a remote accounts database or a git push can't delay other
        # requests. The keys are whether a request needs accounts, and whether it writes.
        self._pools = {
            (asks, writes): ClientThreads(WAITING_THREADS, "write" if writes else "answer", RESERVED_THREADS)
            for asks in (False, True)
            for writes in (False, True)
        }
        self._waiting = ClientThreads(WAITING_THREADS, "upload", RESERVED_THREADS)
        self._working: set[asyncio.Task[None]] = set()
        self._turns = PipelineTurns()

    def run(self) -> None:
        """Serve until SIGTERM arrives, then end event streams and finish all other requests."""
        # `Connection.get_buffer` relies on the order in which this event loop makes its calls.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._serve())

    def shut_down(self) -> None:
        """Stop accepting connections immediately, and shut down after SHUTDOWN_GRACE_S seconds."""
        self.is_shutting_down = True
        self._loop.call_soon_threadsafe(self._acceptor.stop)
        time.sleep(SHUTDOWN_GRACE_S)
        self._loop.call_soon_threadsafe(self._end)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended, self._none_left = asyncio.Event(), asyncio.Event()
        make, make_room = partial(Connection, self), self._connections.close_idle
        self._acceptor = Acceptor(self._listener, make, max_connections(), make_room)
        self._loop.add_signal_handler(signal.SIGTERM, self._end)
        self._check()
        self._acceptor.start()
        await self._ended.wait()
        while self._connections:
            self._none_left.clear()
            await self._none_left.wait()
        for pool in (*self._pools.values(), self._waiting, self._computing):
            pool.shutdown()

    def _end(self) -> None:
        self.is_shutting_down = True
        self._acceptor.stop()
        self._hub.end()
        for one in self._connections:
            one.close_if_idle()
        self._ended.set()

    def _check(self) -> None:
        self.date = b"date: %s\r\n" % formatdate(usegmt=True).encode()
        now = self._loop.time()
        for one in self._connections:
            one.close_if_stalled(now)
        if self._acceptor.is_full:
            self._connections.close_idle()
        self._loop.call_later(min(STALL_CHECK_INTERVAL_S, connection.HEAD_TIMEOUT_S / 4), self._check)

    # --- called by connections -------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        self._connections.add(connection)

    def closed(self, connection: Connection) -> None:
        self._connections.remove(connection)
        self._acceptor.connection_closed()
        self._none_left.set()

    def postpone(self, connection: Connection) -> None:
        self._turns.add(connection)

    def handle(self, exchange: Exchange) -> None:
        environ = exchange.environ
        self._observer.begin(environ)
        if environ["REQUEST_METHOD"] in IN_PLACE_METHODS:
            exchange.ignore_body()
            environ[IN_PLACE] = environ[ON_LOOP] = True
            response = self._answer_or_postpone(environ)
            if isinstance(response, _PoolReasons):
                del environ[ON_LOOP]
                work = (
                    self._answer_on_thread(exchange)
                    if response.waits_long
                    else self._answer_in_pool(exchange, response)
                )
                self._begin(exchange, work)
            else:
                self._send(exchange, response)
            return
        if self._app.may_query_accounts(environ):
            environ[ACCOUNTS] = True
        answer = self._receive if has_body(environ) else self._answer_soon
        self._begin(exchange, answer(exchange))

    # --- answering ---------------------------------------------------------------------------------

    def _begin(self, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(self._refuse_if_full(exchange, work))
        self._working.add(task)
        task.add_done_callback(partial(self._done, exchange))

    async def _refuse_if_full(self, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except QueueError as error:
            await asyncio.sleep(REFUSAL_PAUSE_S)
            refuse(exchange, error)
            self._observer.end(exchange.environ, error.status)

    def _done(self, exchange: Exchange, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request failed", exc_info=error)
            exchange.abort()

    async def _answer_on_thread(self, exchange: Exchange) -> None:
        environ = exchange.environ
        response = await self._run_in(self._computing, environ, self._answer_or_postpone, environ)
        if isinstance(response, _PoolReasons):
            await self._answer_in_pool(exchange, response)
        else:
            self._send(exchange, response)

    async def _answer_in_pool(self, exchange: Exchange, reasons: _PoolReasons) -> None:
        environ = exchange.environ
        del environ[IN_PLACE]
        if reasons.is_costly:
            environ[COSTLY] = True
        if reasons.needs_accounts:
            environ[ACCOUNTS] = True
        await self._answer_soon(exchange)

    async def _answer_soon(self, exchange: Exchange) -> None:
        environ = exchange.environ
        # A weak reference, because the exchange refers to the environ.
        alive = weakref.ref(exchange)
        environ[GONE] = lambda: (one := alive()) is None or one.has_client_left
        environ[STREAMS], environ[CLIENT] = self._hub, exchange.name
        response = await self._in_thread(environ, self._answer, environ)
        # Clients that retry immediately would increase the load.
        if NO_TURN in environ:
            await asyncio.sleep(REFUSAL_PAUSE_S)
        self._send(exchange, response)

    async def _receive(self, exchange: Exchange) -> None:
        environ = exchange.environ
        told = environ.get("CONTENT_LENGTH", "")
        length = int(told) if told.isdigit() else None
        try:
            most = SMALL_BODY_BYTES
            if length is None or length > SMALL_BODY_BYTES:
                most = await self._in_thread(environ, self._app.max_body_bytes, environ)
            body = await self._receiver.receive(exchange, length, most)
        except ApiError as error:
            # Requests whose clients have disconnected are handled too, so that the rate limit counts them.
            # The traceback refers to the connection, and would keep it open.
            environ[REFUSED] = error.with_traceback(None)
            await self._answer_soon(exchange)
            return
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = body.file, str(body.length)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        with body:
            await self._answer_soon(exchange)

    def _in_thread(self, environ: Environ, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        pool = self._pools[ACCOUNTS in environ, environ["REQUEST_METHOD"] not in IN_PLACE_METHODS]
        if self._app.may_wait_long(environ):
            pool = self._waiting
        return self._run_in(pool, environ, work, *args)

    def _run_in(
        self, pool: ClientThreads, environ: Environ, work: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        client = network_of(environ.get("REMOTE_ADDR", ""))
        return asyncio.wrap_future(pool.submit(client, work, *args), loop=self._loop)

    def _answer_or_postpone(self, environ: Environ) -> _Response | _PoolReasons | None:
        try:
            return self._answer(environ)
        except NeedsThreadPool as error:
            return _PoolReasons(error.costly, error.accounts, error.long)

    def _answer(self, environ: Environ) -> _Response | None:
        """Return the app's response, or None if the client has disconnected.

        Raises NeedsThreadPool if the request can't run on this thread.
        """
        told = self._observer.response_headers(environ)
        response: _Response | None
        try:
            begun: list[Any] = []
            body: bytes | Iterable[bytes]
            body = answered = self._app(environ, lambda *told: begun.extend(told))
            headers = [*begun[1], *told]
            if not isinstance(body, Stream) and (
                isinstance(body, list | tuple) or length_of(headers) <= MAX_JOINED_BYTES
            ):
                body = _joined(answered)[: length_of(headers) or None]  # A file may have grown meanwhile.
            response = _Response(int(begun[0][:3]), headers, body)
        except NeedsThreadPool:
            raise
        except ClientGone:
            response = None
        except Exception:
            log.exception("a request failed")
            response = _Response(500, [], b"")
        streams = response is not None and isinstance(response.body, Stream)
        self._observer.end(environ, response.status if response else CLIENT_GONE_STATUS, streams=streams)
        return response

    def _send(self, exchange: Exchange, response: _Response | None) -> None:
        if response is None:
            exchange.abort()
            return
        try:
            if isinstance(response.body, bytes):
                if len(response.body) > SMALL_BYTES:
                    sending = self._large.send(response.body, response.status, response.headers, exchange)
                    self._begin(exchange, sending)
                    return
                exchange.respond(response.status, response.headers, response.body)
                return
            exchange.send_head(response.status, response.headers)
        except ValueError:
            log.exception("a request failed")
            exchange.respond(500, [], b"")
            return
        if isinstance(response.body, Stream):
            begin_stream(self._hub, response.body, exchange)
        else:
            self._begin(exchange, send_body(response.body, length_of(response.headers), exchange))


def begin_stream(hub: Hub, stream: Stream, exchange: Exchange) -> None:
    if exchange.has_client_left:
        exchange.end()
        return
    exchange.on_client_left = hub.open(stream, exchange)


def _joined(body: Iterable[bytes]) -> bytes:
    try:
        return b"".join(body)
    finally:
        if close := getattr(body, "close", None):
            close()


def max_connections() -> int:
    """Increase the process's limit on open files, and return how many connections the new limit allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 2 * MAX_CONNECTIONS + RESERVED_FILES
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    # Each connection needs up to two files: its socket, and a body that is being received or sent.
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max((files - RESERVED_FILES) // 2, 1)
