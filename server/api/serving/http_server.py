"""The HTTP server of one process: granian takes connections and reads heads, a WSGI app answers.

A request without a body is answered by the thread that granian calls with it. A body is received first, on
an event loop, so that no client, however slowly it sends, holds a thread; then a thread of a small pool
answers. granian sends the answer, from memory or from a file, as slowly as the client takes it.

granian's own servers run a coroutine for each request, which costs as much again as to answer a read that
is kept. So this module, and no other, uses what they are made of (docs/architecture.md).
"""

import asyncio
import logging
import resource
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

from granian import _granian
from granian.constants import HTTPModes
from granian.http import HTTP1Settings, HTTP2Settings

from server.api.environ import REFUSED
from server.api.front import Front
from server.api.response import READING, Environ
from server.api.serving.bodies import SMALL, ClientGone, Receiver
from server.api.serving.file_part import FilePart
from server.errors import ApiError

log = logging.getLogger("quire")

THREADS = 16  # that answer requests without a body; those that cost much take up nine (server.index.budget)
WRITERS = 8  # threads that answer requests with a body; passwords take up six (server.auth.passwords)
HEAD_MS = 30_000  # how long the head of a request may take
CONNECTIONS = 4096  # of one process; more wait until one is closed
FILES = 200  # files that a process may have open beside its connections
WAITING = 1024  # connections that nobody has taken yet
_NO_TLS: tuple[Any, ...] = (False, None, None, None, "tls1.3", None, [], False)
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
    """Serves an app at an address. `folder` makes the folder that large bodies are received in."""

    def __init__(self, app: Front, address: tuple[str, int], folder: Callable[[], Path]) -> None:
        self._app, self._address = app, address
        self._receiver = Receiver(folder)
        self._pool = ThreadPoolExecutor(WRITERS, "answer")
        self._receiving: set[asyncio.Task[None]] = set()

    def run(self) -> None:
        """Serve until SIGTERM, then answer what has begun to arrive."""
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        ended, stop = asyncio.Event(), _granian.WorkerSignal()
        stop.add_cb(lambda: self._loop.call_soon_threadsafe(ended.set))
        self._loop.add_signal_handler(signal.SIGTERM, stop.set)
        make: Any = _granian.RSGIWorker
        worker = make(
            1,
            (_granian.ListenerSpec(*self._address, WAITING), None),
            None,
            1,
            512,
            THREADS,
            30,
            most_connections(),
            HTTPModes.http1,
            HTTP1Settings(header_read_timeout=HEAD_MS),
            HTTP2Settings(),
            False,
            None,
            *_NO_TLS,
            (None, None),
        )
        worker.serve_async(_Scheduler(self._loop, self._schedule), self._loop, stop)
        await ended.wait()
        self._pool.shutdown()

    def _schedule(self, request: Any) -> None:
        """Answer a request, in a thread of granian's, or see to it that its body is received."""
        environ = environ_of(request.scope)
        if environ["REQUEST_METHOD"] in READING or not _has_body(environ):
            self._answer(environ, request.proto)
        else:
            self._loop.call_soon_threadsafe(self._receive_soon, environ, request.proto)

    def _receive_soon(self, environ: Environ, protocol: Any) -> None:
        task = self._loop.create_task(self._receive(environ, protocol))
        self._receiving.add(task)
        task.add_done_callback(self._receiving.discard)

    async def _receive(self, environ: Environ, protocol: Any) -> None:
        """Receive the body of a request, then let a thread of the pool answer."""
        told = environ.get("CONTENT_LENGTH", "")
        length = int(told) if told.isdigit() else None
        run = partial(self._loop.run_in_executor, self._pool)
        try:
            most = SMALL
            if length is None or length > SMALL:
                most = await run(self._app.most_bytes, environ)
            body, received = await self._receiver.receive(protocol, length, most)
        except ClientGone:
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

    def _answer(self, environ: Environ, protocol: Any) -> None:
        try:
            begun: list[Any] = []
            body = self._app(environ, lambda *told: begun.extend(told))
            status, headers = int(begun[0][:3]), begun[1]
            if isinstance(body, FilePart) and body.start < body.end:
                protocol.response_file_range(status, headers, str(body.path), body.start, body.end)
            else:
                protocol.response_bytes(status, headers, b"".join(body))
        except Exception:
            log.exception("a request could not be answered")
            protocol.response_empty(500, [])


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
        key = _key(name)
        environ[key] = f"{environ[key]},{value}" if key in environ else value
    if "HTTP_HOST" not in environ:
        environ["HTTP_HOST"] = scope.authority or ""
    return environ


def _has_body(environ: Environ) -> bool:
    return environ.get("CONTENT_LENGTH", "0") != "0" or "HTTP_TRANSFER_ENCODING" in environ


@lru_cache(maxsize=256)
def _key(header: str) -> str:
    """What WSGI calls a header, whose name is in small letters."""
    name = header.upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"
