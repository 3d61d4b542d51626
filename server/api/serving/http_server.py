"""The HTTP server of one process: an event loop takes connections, and a WSGI app answers.

The loop itself answers reads of content that take it less than some milliseconds: to hand such a read to a
thread costs more than to answer it. A read that takes longer goes on in one of a few threads; threads of
Python that compute at once only get in each other's way. What may have to wait is answered by a thread of a
pool: a read that has turned out costly, and all that is no read of content. What may have to wait for a
database of accounts that is elsewhere has a pool of its own, and so have uploads, which wait until their
pictures are scaled. A body is received first, on the loop, so that no client, however slowly it sends, holds
a thread. A response is sent from memory, as slowly as the client takes it; of a large file, no more is in
memory than that.
"""

import asyncio
import logging
import resource
import signal
import socket
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from email.utils import formatdate
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from server.api.entrance import Entrance
from server.api.environ import ACCOUNTS, CLIENT, COSTLY, GONE, IN_PLACE, ON_LOOP, REFUSED, STREAMS
from server.api.monitoring.request_counts import Observer
from server.api.response import Environ, Header
from server.api.serving import connection
from server.api.serving.bodies import SMALL, Receiver
from server.api.serving.connection import READ_BYTES, Connection, Exchange
from server.api.serving.heads import has_body
from server.api.serving.sockets import Acceptor
from server.errors import ApiError, ClientGone, NeedsThreadPool
from server.events.hub import Hub
from server.events.stream import Stream

log = logging.getLogger("quire")
T = TypeVar("T")

COMPUTING_THREADS = 2  # that go on with reads that take long: one may have the turn of the costly ones
THREADS = 24  # that may wait: costly reads take up nine (server.index.budget), passwords six (server.auth)
IN_PLACE_METHODS = ("GET", "HEAD", "OPTIONS")
CLIENT_GONE = 499  # the status that nobody gets
CONNECTIONS = 4096  # of one process; more wait until one is closed
FILES = 200  # files that a process may have open beside its connections
RETIRE_S = 1.0  # how long clients are told that their connections close, before they are closed
WAITING = 1024  # connections that nobody has taken yet
CHECK_S = 1.0  # between two looks for clients that send or take nothing
LARGE = 1024 * 1024  # bytes of a body up to which it is in memory as a whole
_PART = 128 * 1024  # bytes of a larger one that are in memory, about


class Connections:
    """The connections of one process, by the addresses and ports of their clients."""

    def __init__(self) -> None:
        self._open: dict[str, Connection] = {}

    def add(self, one: Connection) -> None:
        """Note one."""
        self._open[one.name] = one

    def remove(self, one: Connection) -> None:
        """Forget one that is closed."""
        self._open.pop(one.name, None)

    def __iter__(self) -> Iterator[Connection]:
        return iter(list(self._open.values()))

    def __len__(self) -> int:
        return len(self._open)

    def unsent(self, clients: Collection[str]) -> dict[str, int]:
        """Return how many bytes each client has yet to get, without those that have left. For any thread."""
        found = {}
        for client in clients:
            one = self._open.get(client)
            with suppress(OSError, ValueError):  # It is being closed.
                if one is not None:
                    found[client] = one.unsent
        return found

    def give_up(self, clients: Collection[str]) -> None:
        """Close the connections of some clients, and drop what they have not taken. For any thread."""
        for client in clients:
            if one := self._open.get(client):
                one.loop.call_soon_threadsafe(one.give_up)


@dataclass(frozen=True, slots=True)
class _Response:
    """What the app answers; a large body, or a stream, is sent by and by."""

    status: int
    headers: list[Header]
    body: bytes | Stream | Iterable[bytes]


class HttpServer:
    """Serves an app on a socket that listens, and that other processes may share.

    `folder` makes the folder that large bodies are received in, `hub` serves the streams of events,
    `observer` notes each request, and `connections` are those that the server has.
    """

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
        self.retiring = False
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.date = b""
        self.heads: dict[bytes, Environ] = {}
        self._receiver = Receiver(folder)
        self._computing = ThreadPoolExecutor(COMPUTING_THREADS, "read")
        # Where a database of accounts says nothing, or a git remote is asked before each write, many wait for
        # that: all others have threads of their own. By whether a request asks for accounts, and may write.
        self._pools = {
            (asks, writes): ThreadPoolExecutor(THREADS, "write" if writes else "answer")
            for asks in (False, True)
            for writes in (False, True)
        }
        self._waiting = ThreadPoolExecutor(THREADS, "upload")
        self._working: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Serve until SIGTERM, then end all streams, and answer what has begun to arrive."""
        # Not any loop: `Connection.get_buffer` depends on the order in which this one does things.
        with asyncio.Runner(loop_factory=asyncio.SelectorEventLoop) as runner:
            runner.run(self._serve())

    def retire(self) -> None:
        """Let clients take their next requests to another process, then end as with SIGTERM.

        New connections are left to that one at once, and who has just connected has RETIRE_S to ask. Those
        that ask again and again learn from an answer that their connection closes; it is the others' that
        are closed while they send nothing.
        """
        self.retiring = True
        self._loop.call_soon_threadsafe(self._acceptor.stop)
        time.sleep(RETIRE_S)
        self._loop.call_soon_threadsafe(self._end)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended, self._none_left = asyncio.Event(), asyncio.Event()
        self._acceptor = Acceptor(self._listener, partial(Connection, self), most_connections())
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
        self.retiring = True
        self._acceptor.stop()
        self._hub.end()
        for one in self._connections:
            one.end()
        self._ended.set()

    def _check(self) -> None:
        """Give up clients that send or take nothing, now and then."""
        self.date = b"date: %s\r\n" % formatdate(usegmt=True).encode()
        now = self._loop.time()
        for one in self._connections:
            one.check(now)
        self._loop.call_later(min(CHECK_S, connection.HEAD_S / 4), self._check)

    # --- called by connections -------------------------------------------------------------------

    def opened(self, connection: Connection) -> None:
        """Note a connection."""
        self._connections.add(connection)

    def closed(self, connection: Connection) -> None:
        """Forget a connection."""
        self._connections.remove(connection)
        self._acceptor.left()
        self._none_left.set()

    def handle(self, exchange: Exchange) -> None:
        """Answer a request in place, or see to it that a thread does that may wait, once its body is here."""
        environ = exchange.environ
        self._observer.begin(environ)
        if environ["REQUEST_METHOD"] in IN_PLACE_METHODS:
            environ[IN_PLACE] = environ[ON_LOOP] = True
            try:
                response = self._answer(environ)
            except NeedsThreadPool as postponed:
                del environ[ON_LOOP]
                work = self._compute(exchange) if postponed.long else self._wait(exchange, postponed)
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
        task = self._loop.create_task(work)
        self._working.add(task)
        task.add_done_callback(partial(self._done, exchange))

    def _done(self, exchange: Exchange, task: asyncio.Task[None]) -> None:
        self._working.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request could not be answered", exc_info=error)
            exchange.give_up()

    async def _compute(self, exchange: Exchange) -> None:
        """Let a thread go on with a read that takes too long for the loop."""
        try:
            response = await self._loop.run_in_executor(self._computing, self._answer, exchange.environ)
        except NeedsThreadPool as postponed:
            await self._wait(exchange, postponed)
        else:
            self._send(exchange, response)

    async def _wait(self, exchange: Exchange, postponed: NeedsThreadPool) -> None:
        """Let a thread of the pool answer a read that was postponed, as long as its client waits."""
        environ = exchange.environ
        del environ[IN_PLACE]
        if postponed.costly:
            environ[COSTLY] = True
        if postponed.accounts:
            environ[ACCOUNTS] = True
        environ[STREAMS], environ[CLIENT] = self._hub, exchange.name
        environ[GONE] = lambda: exchange.is_left
        await self._answer_soon(exchange)

    async def _answer_soon(self, exchange: Exchange) -> None:
        """Let a thread of the pool answer a request."""
        self._send(exchange, await self._in_thread(exchange.environ, self._answer, exchange.environ))

    async def _receive(self, exchange: Exchange) -> None:
        """Receive the body of a request, then let a thread of the pool answer."""
        environ = exchange.environ
        told = environ.get("CONTENT_LENGTH", "")
        length = int(told) if told.isdigit() else None
        try:
            most = SMALL
            if length is None or length > SMALL:
                most = await self._in_thread(environ, self._app.most_bytes, environ)
            body, received = await self._receiver.receive(exchange, length, most)
        except ClientGone:  # It has sent less than it said.
            exchange.respond(400, [], b"")
            self._observer.end(environ, 400)
            return
        except ApiError as error:
            # Without its frames, which hold the connection open.
            environ[REFUSED] = error.with_traceback(None)
            await self._answer_soon(exchange)
            return
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = body, str(received)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        with body:
            await self._answer_soon(exchange)

    def _in_thread(self, environ: Environ, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """What a thread makes of some work for a request, which may have to wait."""
        pool = self._pools[ACCOUNTS in environ, environ["REQUEST_METHOD"] not in IN_PLACE_METHODS]
        if self._app.waits_long(environ):
            pool = self._waiting
        return self._loop.run_in_executor(pool, work, *args)

    def _answer(self, environ: Environ) -> _Response | None:
        """What the app answers; None if the client has left. Raises NeedsThreadPool."""
        told = self._observer.answer(environ)
        response: _Response | None
        try:
            begun: list[Any] = []
            body: bytes | Iterable[bytes]
            body = answered = self._app(environ, lambda *told: begun.extend(told))
            headers = [*begun[1], *told]
            if not isinstance(body, Stream) and (isinstance(body, list | tuple) or _length(headers) <= LARGE):
                body = _joined(answered)
            response = _Response(int(begun[0][:3]), headers, body)
        except NeedsThreadPool:
            raise
        except ClientGone:
            response = None
        except Exception:
            log.exception("a request could not be answered")
            response = _Response(500, [], b"")
        streams = response is not None and isinstance(response.body, Stream)
        self._observer.end(environ, response.status if response else CLIENT_GONE, streams=streams)
        return response

    def _send(self, exchange: Exchange, response: _Response | None) -> None:
        """Send what was answered."""
        if response is None:
            exchange.give_up()
            return
        try:
            if isinstance(response.body, bytes):
                exchange.respond(response.status, response.headers, response.body)
                return
            exchange.begin(response.status, response.headers)
        except ValueError:
            log.exception("a request could not be answered")
            exchange.respond(500, [], b"")
            return
        if isinstance(response.body, Stream):
            begin_stream(self._hub, response.body, exchange)
        else:
            self._begin(exchange, send_body(response.body, _length(response.headers), exchange))


def begin_stream(hub: Hub, stream: Stream, exchange: Exchange) -> None:
    """Serve a stream through a hub until its client leaves. A client that has left already is not counted."""
    if exchange.is_left:
        exchange.end()
        return
    exchange.on_left = hub.open(stream, exchange)


async def send_body(body: Iterable[bytes], length: int, exchange: Exchange) -> None:
    """Send a body of some bytes, as the client takes it, and close it."""
    left, parts = length, _parts(body)
    try:
        while left > 0:
            size = exchange.send(await asyncio.to_thread(next, parts, b""))
            left -= size
            if not size or not await exchange.connection.drain():
                exchange.give_up()  # It was told of more than it gets.
                return
        exchange.end()
    finally:
        if close := getattr(body, "close", None):
            close()


def _joined(body: Iterable[bytes]) -> bytes:
    try:
        return b"".join(body)
    finally:
        if close := getattr(body, "close", None):
            close()


def _parts(body: Iterable[bytes]) -> Iterator[bytes]:
    blocks, size = list[bytes](), 0
    for block in body:
        blocks.append(block)
        size += len(block)
        if size >= _PART:
            yield b"".join(blocks)
            blocks, size = [], 0
    yield b"".join(blocks)


def most_connections() -> int:
    """How many connections this process can have and still open files; raises its limit as far as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + FILES
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(files - FILES, 1)


def _length(headers: Iterable[Header]) -> int:
    """How long a body is, as the headers say; 0 where they do not."""
    return next((int(value) for name, value in headers if name == "Content-Length" and value), 0)
