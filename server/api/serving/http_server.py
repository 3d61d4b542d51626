"""The HTTP server of one process: granian takes connections and reads heads, a WSGI app answers.

A read of content is answered in place, by the thread that granian calls with it: there are few of these,
since threads of Python that compute at once only get in each other's way. What may have to wait is answered
by a thread of a pool: a read that has turned out costly, and all that is no read of content. What may have to
wait for a database of accounts that is elsewhere has a pool of its own, and so have uploads, which wait until
their pictures are scaled. A body is received first, on an event
loop, so that no client, however slowly it sends, holds a thread. granian sends the answer as slowly as the
client takes it; of a large file, it is given no more than that.

granian's own servers run a coroutine for each request, which costs as much again as to answer a read that
is kept. So this module, and no other, uses what they are made of (docs/architecture.md).
"""

import asyncio
import logging
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any, TypeVar

from granian import _granian
from granian.constants import HTTPModes
from granian.http import HTTP1Settings, HTTP2Settings

from server.api.entrance import Entrance
from server.api.environ import ACCOUNTS, CLIENT, COSTLY, GONE, IN_PLACE, REFUSED, STREAMS
from server.api.monitoring.request_counts import Observer
from server.api.response import Environ, Header
from server.api.serving.bodies import SMALL, Receiver
from server.api.serving.sockets import LARGE, StreamClient, begin, send_body, stop_accepting
from server.errors import ApiError, BadRequestError, ClientGone, NeedsThreadPool, UnauthorizedError
from server.events.hub import Hub
from server.events.stream import Stream

log = logging.getLogger("quire")
T = TypeVar("T")

IN_PLACE_THREADS = 4  # that answer reads of content, and never wait
THREADS = 24  # that may wait: costly reads take up nine (server.index.budget), passwords six (server.auth)
IN_PLACE_METHODS = ("GET", "HEAD", "OPTIONS")
CLIENT_GONE = 499  # the status that nobody gets
HEAD_MS = 30_000  # how long the head of a request may take
HEAD_BYTES = 128 * 1024  # of a head; a larger one is refused with 431
CONNECTIONS = 4096  # of one process; more wait until one is closed
FILES = 200  # files that a process may have open beside its connections
RETIRE_S = 1.0  # how long clients are told that their connections close, before they are closed
WAITING = 1024  # connections that nobody has taken yet
_NO_TLS: tuple[Any, ...] = (False, None, None, None, "tls1.3", None, [], False)
# By these a request says when it is to be answered, or done. Where one can't be read, it is not left out.
_CONDITIONS = ("If-Match", "Prefer", "Quire-After")
_ENVIRON: Environ = {
    "SCRIPT_NAME": "",
    "SERVER_SOFTWARE": "granian",
    "wsgi.errors": sys.stderr,
    "wsgi.input": BytesIO(),
    "wsgi.input_terminated": True,
    "wsgi.multiprocess": True,
    "wsgi.multithread": True,
    "wsgi.run_once": False,
    "wsgi.version": (1, 0),
}


class HttpServer:
    """Serves an app on a socket that listens, and that other processes may share.

    `folder` makes the folder that large bodies are received in, `hub` serves the streams of events, and
    `observer` notes each request.
    """

    def __init__(
        self, app: Entrance, listener: socket.socket, folder: Callable[[], Path], hub: Hub, observer: Observer
    ) -> None:
        self._app, self._listener, self._hub, self._observer = app, listener, hub, observer
        self._retiring = False
        self._receiver = Receiver(folder)
        # Where a database of accounts says nothing, or a git remote is asked before each write, many wait for
        # that: all others have threads of their own. By whether a request asks for accounts, and may write.
        self._pools = {
            (asks, writes): ThreadPoolExecutor(THREADS, "write" if writes else "answer")
            for asks in (False, True)
            for writes in (False, True)
        }
        self._waiting = ThreadPoolExecutor(THREADS, "upload")
        self._working: set[asyncio.Task[None]] = set()
        self._stop = _granian.WorkerSignal()

    def run(self) -> None:
        """Serve until SIGTERM, then end all streams, and answer what has begun to arrive."""
        asyncio.run(self._serve())

    def retire(self) -> None:
        """Let clients take their next requests to another process, then end as with SIGTERM.

        New connections are left to that one at once, and who has just connected has RETIRE_S to ask. Those
        that ask again and again learn from an answer that their connection closes; it is the others' that
        are closed while they send nothing.
        """
        self._retiring = True
        stop_accepting(self._listener)
        time.sleep(RETIRE_S)
        self._loop.call_soon_threadsafe(self._end)

    def _end(self) -> None:
        self._hub.end()
        self._stop.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        ended, stop = asyncio.Event(), self._stop
        stop.add_cb(lambda: self._loop.call_soon_threadsafe(ended.set))
        self._loop.add_signal_handler(signal.SIGTERM, self._end)
        make: Any = _granian.RSGIWorker
        make_socket: Any = _granian.SocketHolder
        worker = make(
            1,
            (None, make_socket(os.dup(self._listener.fileno()), False, WAITING)),
            None,
            1,
            512,
            IN_PLACE_THREADS,
            30,
            most_connections(),
            HTTPModes.http1,
            HTTP1Settings(header_read_timeout=HEAD_MS, max_buffer_size=HEAD_BYTES),
            HTTP2Settings(),
            False,
            None,
            *_NO_TLS,
            (None, None),
        )
        worker.serve_async(_Scheduler(self._loop, self._schedule), self._loop, stop)
        await ended.wait()
        for pool in (*self._pools.values(), self._waiting):
            pool.shutdown()

    def _schedule(self, request: Any) -> None:
        """Answer a request in place, or see to it that a thread does that may wait, once its body is here."""
        environ = environ_of(request.scope)
        self._observer.begin(environ)
        work = self._receive if _has_body(environ) else self._answer_soon
        if environ["REQUEST_METHOD"] in IN_PLACE_METHODS:
            environ[IN_PLACE] = True
            try:
                self._answer(environ, request.proto)
                return
            except NeedsThreadPool as postponed:
                del environ[IN_PLACE]
                if postponed.costly:
                    environ[COSTLY] = True
                if postponed.accounts:
                    environ[ACCOUNTS] = True
                environ[STREAMS], environ[CLIENT] = self._hub, request.scope.client
                work = self._answer_later
        elif self._app.may_query_accounts(environ):
            environ[ACCOUNTS] = True
        self._loop.call_soon_threadsafe(self._begin, work(environ, request.proto))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)

    async def _answer_soon(self, environ: Environ, protocol: Any) -> None:
        """Let a thread of the pool answer a request that has no body."""
        await self._in_thread(environ, self._answer, environ, protocol)

    async def _answer_later(self, environ: Environ, protocol: Any) -> None:
        """Let a thread of the pool answer a read that was postponed, as long as its client waits."""
        left = self._loop.create_task(_until_left(protocol))
        environ[GONE] = left.done
        try:
            await self._answer_soon(environ, protocol)
        finally:
            left.cancel()

    async def _receive(self, environ: Environ, protocol: Any) -> None:
        """Receive the body of a request, then let a thread of the pool answer."""
        told = environ.get("CONTENT_LENGTH", "")
        length = int(told) if told.isdigit() else None
        run = partial(self._in_thread, environ)
        try:
            most = SMALL
            if length is None or length > SMALL:
                most = await run(self._app.most_bytes, environ)
            body, received = await self._receiver.receive(protocol, length, most)
        except ClientGone:  # It has sent less than it said.
            protocol.response_empty(400, [("connection", "close")])
            self._observer.end(environ, 400)
            return
        except ApiError as error:
            # Without its frames, which hold the connection open.
            environ[REFUSED] = error.with_traceback(None)
            await run(self._answer, environ, protocol)
            return
        environ["wsgi.input"], environ["CONTENT_LENGTH"] = body, str(received)
        environ.pop("HTTP_TRANSFER_ENCODING", None)
        with body:
            await run(self._answer, environ, protocol)

    def _in_thread(self, environ: Environ, work: Callable[..., T], *args: Any) -> asyncio.Future[T]:
        """What a thread makes of some work for a request, which may have to wait."""
        pool = self._pools[ACCOUNTS in environ, environ["REQUEST_METHOD"] not in IN_PLACE_METHODS]
        if self._app.waits_long(environ):
            pool = self._waiting
        return self._loop.run_in_executor(pool, work, *args)

    def _answer(self, environ: Environ, protocol: Any) -> None:
        told, streams = self._observer.answer(environ), False
        try:
            begun: list[Any] = []
            body = self._app(environ, lambda *told: begun.extend(told))
            status, headers = int(begun[0][:3]), [*begun[1], *told]
            if self._retiring:
                headers = [*headers, ("connection", "close")]
            streams = isinstance(body, Stream)
            if isinstance(body, Stream):
                client = StreamClient(protocol, status, headers, environ[CLIENT])
                self._loop.call_soon_threadsafe(begin, self._hub, body, client, protocol)
            elif not isinstance(body, list | tuple) and (length := _length(headers)) > LARGE:
                client = StreamClient(protocol, status, headers, environ[CLIENT])
                self._loop.call_soon_threadsafe(self._begin, send_body(body, length, client))
            else:
                protocol.response_bytes(status, headers, b"".join(body))
        except NeedsThreadPool:
            raise
        except ClientGone:
            status = CLIENT_GONE
            protocol.response_empty(CLIENT_GONE, [])
        except Exception:
            status = 500
            log.exception("a request could not be answered")
            protocol.response_empty(500, [])
        self._observer.end(environ, status, streams=streams)


async def _until_left(protocol: Any) -> None:
    """Wait until the client of a request has closed its connection."""
    await protocol.client_disconnect()


class _Scheduler(_granian.CallbackScheduler):
    """What granian calls with each request, in one of its threads."""

    __slots__ = ()

    def __new__(cls, loop: asyncio.AbstractEventLoop, schedule: Callable[[Any], None]) -> "_Scheduler":
        make: Any = super().__new__
        made: _Scheduler = make(cls, loop, None, None, None, None)
        return made

    def __init__(self, loop: asyncio.AbstractEventLoop, schedule: Callable[[Any], None]) -> None:
        super().__init__()
        self._schedule_fn = schedule


def most_connections() -> int:
    """How many connections this process can have and still open files; raises its limit as far as it may."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + FILES
    files = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    return max(files - FILES, 1)


def environ_of(scope: Any) -> Environ:
    """What WSGI calls a request, of what granian says of it."""
    path = scope.path
    environ = {
        **_ENVIRON,
        "REQUEST_METHOD": scope.method,
        "PATH_INFO": path if path.isascii() else path.encode(errors="surrogateescape").decode("latin-1"),
        "QUERY_STRING": scope.query_string,
        "SERVER_PROTOCOL": f"HTTP/{scope.http_version}",
        "REMOTE_ADDR": scope.client.rpartition(":")[0].strip("[]"),
        "wsgi.url_scheme": scope.scheme,
    }
    environ["SERVER_NAME"], _, environ["SERVER_PORT"] = scope.server.rpartition(":")
    for name, value in scope.headers.items():
        if "_" in name:  # WSGI could not tell it from the one with a hyphen, which a proxy may have set.
            continue
        key = _key(name)
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    refusal = _refusal(scope, environ)
    if refusal:
        environ[REFUSED] = refusal
    environ.setdefault("HTTP_HOST", scope.authority or "")
    return environ


def _refusal(scope: Any, environ: Environ) -> ApiError | None:
    """Why a request is refused for its headers, whatever it asks for; None for one that is not."""
    # granian passes on no value that is not ASCII.
    if "HTTP_AUTHORIZATION" not in environ and "authorization" in scope.headers:
        return UnauthorizedError()
    for header in _CONDITIONS:
        if _key(header) not in environ and header.lower() in scope.headers:
            return BadRequestError(f"The value of the header {header} is not ASCII")
    # granian undoes no other coding.
    if environ.get("HTTP_TRANSFER_ENCODING", "chunked").lower() != "chunked":
        return BadRequestError("A body can be sent in chunks, and in no other transfer coding")
    host = environ.get("HTTP_HOST", scope.authority)
    if "," in (host or ""):
        return BadRequestError("A request must have one Host header")
    if not host and "HTTP_HOST" not in environ and scope.http_version == "1.1":
        return BadRequestError("A request must have a Host header")
    return None


def _length(headers: Iterable[Header]) -> int:
    """How long a body is, as the headers say; 0 where they do not."""
    return next((int(value) for name, value in headers if name == "Content-Length" and value), 0)


def _has_body(environ: Environ) -> bool:
    return environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ


# Saves 1.2 µs of a request with eight headers.
@lru_cache(maxsize=256)
def _key(header: str) -> str:
    """What WSGI calls a header, whose name is in small letters."""
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
