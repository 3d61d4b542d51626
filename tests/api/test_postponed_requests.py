"""Tests of requests that the app begins to render on the event loop, but that must then wait for a thread."""

import os
import signal
import socket
import threading
import weakref
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest

from server.api.entrance import Entrance
from server.api.environ import IN_PLACE, ON_LOOP
from server.api.monitoring.request_counts import Observer, RequestCounts
from server.api.response import Environ, StartResponse
from server.api.serving.http_server import Connections, HttpServer
from server.errors import NeedsThreadPool
from server.events.hub import Hub
from server.events.stream import StreamCounts

HEAD = b"GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


class Rendered(bytearray):
    """A part of a response that can be weakly referenced."""


class App:
    """An app that begins to render a response and then needs a thread."""

    def __init__(self) -> None:
        self._rendered: list[weakref.ref[Rendered]] = []

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        on_loop, is_long = ON_LOOP in environ, environ["PATH_INFO"] == "/long"
        if on_loop or (IN_PLACE in environ and is_long):
            rendered = Rendered(b"text")
            self._rendered.append(weakref.ref(rendered))
            try:
                raise KeyError(rendered)
            except KeyError as error:
                raise NeedsThreadPool(costly=True, long=on_loop and is_long) from error
        kept = sum(one() is not None for one in self._rendered)
        start_response("200 OK", [])
        return [b"%d rendered, %d kept" % (len(self._rendered), kept)]

    def may_query_accounts(self, environ: Environ) -> bool:
        return False

    def may_wait_long(self, environ: Environ) -> bool:
        return False


@pytest.mark.parametrize(
    ("path", "body"), [(b"/costly", b"1 rendered, 0 kept"), (b"/long", b"2 rendered, 0 kept")]
)
def test_a_waiting_request_keeps_nothing_of_its_attempt(tmp_path: Path, path: bytes, body: bytes) -> None:
    sockets, received = Connections(), []
    hub = Hub(cast(Any, None), StreamCounts(), sockets, cast(Any, None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        counts = RequestCounts()
        counts.register_worker(1)
        observer = Observer(counts, lambda: 0)
        server = HttpServer(cast(Entrance, App()), listener, lambda: tmp_path, hub, observer, sockets)

        def read() -> None:
            with socket.create_connection(listener.getsockname(), timeout=30) as client:
                client.sendall(HEAD % path)
                while part := client.recv(65536):
                    received.append(part)
            os.kill(os.getpid(), signal.SIGTERM)

        reader = threading.Thread(target=read)
        reader.start()
        server.run()
        reader.join()
    assert b"".join(received).partition(b"\r\n\r\n")[2] == body
