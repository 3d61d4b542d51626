"""Tests of response data that a client has not yet read, and of disconnecting such a client."""

import asyncio
import socket
from collections.abc import Callable

import pytest

from server.api.response import Environ
from server.api.serving.connection import Connection, Exchange
from server.api.serving.http_server import Connections
from server.api.serving.sockets import Acceptor


class Server:
    """A minimal server that never responds to requests."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(1000))
        self.date, self.is_shutting_down, self.connections = b"", False, Connections()
        self.heads: dict[bytes, Environ] = {}

    def opened(self, connection: Connection) -> None:
        self.connections.add(connection)

    def closed(self, connection: Connection) -> None:
        self.connections.remove(connection)

    def handle(self, exchange: Exchange) -> None:
        """Ignore the request."""

    def postpone(self, connection: Connection) -> None:
        """Ignore further requests."""


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_what_a_client_has_not_taken_is_known(host: str) -> None:
    asyncio.run(_take_slowly(host))


async def _take_slowly(host: str) -> None:
    server = Server()
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as listener:
        listener.setblocking(False)
        acceptor = Acceptor(listener, lambda: Connection(server), 10, server.connections.close_idle)
        acceptor.start()
        with socket.create_connection(listener.getsockname()[:2], timeout=5) as client:
            port = client.getsockname()[1]
            name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
            await until(lambda: len(server.connections) == 1)
            unsent = server.connections.unacknowledged_bytes
            assert unsent({name, "127.0.0.1:1"}) == {name: 0}
            (connection,) = server.connections
            connection.write(bytes(10_000_000))
            assert unsent({name})[name] > 1_000_000
            left = 10_000_000
            while left:
                left -= len(await asyncio.to_thread(client.recv, 1_000_000))
            await until(lambda: unsent({name}) == {name: 0})
            await asyncio.to_thread(server.connections.disconnect, {name})
            assert await asyncio.to_thread(client.recv, 1) == b""
            await until(lambda: unsent({name}) == {})
        acceptor.stop()
