"""Tests of clients that disconnect, or break the protocol, before a request's body is complete."""

import gc
import os
import signal
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from server.api.app import create_app
from server.api.entrance import Entrance
from server.api.monitoring.request_counts import Observer, RequestCounts
from server.api.serving import bodies
from server.api.serving.connection import Exchange
from server.api.serving.http_server import Connections, HttpServer
from server.auth.accounts import Accounts
from server.errors import ApiError, ClientGone
from server.events.hub import Hub
from server.events.stream import StreamCounts
from server.service.opening import Mode, open_site
from tests.servers import free_port, get, serving
from tests.sites import schema, write
from tests.waiting import until

FILES = {
    "content-types/note.json": schema("note", {"title": "string"}),
    "content/notes/one.md": "---\ntitle: first\n---\n",
    "site.yaml": "roles:\n  public: {note: [find], auth: [callback]}\nsearch: {index: false}\n",
}
BODIES = 40
SIZE = 60_000
LOGIN = b"POST /api/auth/local HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
BEGUN = LOGIN + b"Content-Length: 64000\r\n\r\n" + b"[" * SIZE
COMPLETE = b"GET /api/notes HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
CHUNKS = LOGIN + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (SIZE, b"[" * SIZE)


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def close(port: int) -> None:
    """Send part of a body, and close the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(BEGUN)


def reset(port: int) -> None:
    """Send part of a body, and reset the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(BEGUN)
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, bytes([1, 0, 0, 0, 0, 0, 0, 0]))


def end(port: int) -> None:
    """Send part of a body and no more, and read the response."""
    assert response(port, BEGUN, ends=True).startswith(b"HTTP/1.1 400 ")


def break_chunks(port: int) -> None:
    """Send a chunk that is malformed."""
    assert response(port, CHUNKS + b"zz\r\n").startswith(b"HTTP/1.1 400 ")


def pause(port: int) -> None:
    """Send part of a body, and wait until the server gives up."""
    assert response(port, BEGUN).startswith(b"HTTP/1.1 408 ")


def response(port: int, data: bytes, *, ends: bool = False) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(data)
        if ends:
            client.shutdown(socket.SHUT_WR)
        received = b""
        while part := client.recv(65536):
            received += part
    return received


@pytest.mark.parametrize("abort", [close, reset, end, break_chunks, pause])
@pytest.mark.usefixtures("no_collector")
def test_nothing_of_an_aborted_body_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abort: Any
) -> None:
    """The garbage collector is off, because it hardly ever looks at old objects in a server."""
    monkeypatch.setattr(bodies, "PROGRESS_TIMEOUT_S", 0.1 if abort is pause else 30.0)
    write(tmp_path, FILES)
    site = open_site(tmp_path, Mode.SERVER, records=False).site
    app = cast(Entrance, create_app(site, Accounts(tmp_path)).wsgi_app)
    counts, sockets = RequestCounts(), Connections()
    counts.register_worker(1)
    hub = Hub(cast(Any, None), StreamCounts(), sockets, cast(Any, None))
    before, kept = set(map(id, remaining())), list[str]()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        port = listener.getsockname()[1]
        server = HttpServer(app, listener, lambda: tmp_path, hub, Observer(counts, lambda: 0), sockets)

        def send() -> None:
            try:
                for _ in range(BODIES):
                    abort(port)
                # Connections are accepted in order, so the server has accepted all of them by then.
                assert response(port, COMPLETE).startswith(b"HTTP/1.1 200 ")
                until(lambda: len(sockets) == 0)
                until(lambda: before.issuperset(map(id, remaining())))
            except AssertionError as error:
                kept.extend([str(error), *(repr(one) for one in remaining() if id(one) not in before)])
            finally:
                os.kill(os.getpid(), signal.SIGTERM)

        sender = threading.Thread(target=send)
        sender.start()
        server.run()
        sender.join()
    assert not kept


def remaining() -> list[object]:
    """Return the exchanges and errors that are still in memory."""
    return [one for one in gc.get_objects() if isinstance(one, Exchange | ApiError | ClientGone)]


def test_the_rate_limit_counts_aborted_bodies(tmp_path: Path) -> None:
    site = f"api: {{rate_limit: 40 per minute}}\n{FILES['site.yaml']}"
    write(tmp_path, {**FILES, "site.yaml": site})
    port = free_port()
    with serving(tmp_path, port, "--workers=1"):
        for _ in range(20):
            close(port)
            end(port)
        assert 429 in [get(port, "/api/notes")[0] for _ in range(20)]
