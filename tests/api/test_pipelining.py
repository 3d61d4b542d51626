"""Tests of pipelined requests: limits for a client that sends many requests but reads few responses."""

import asyncio
import gc
import socket
import sys
import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from server.api.response import Environ
from server.api.serving.connection import (
    MAX_PIPELINED_REQUESTS,
    MAX_QUEUED_BYTES,
    READ_BYTES,
    Connection,
    Exchange,
)
from server.api.serving.pipelining import PipelineTurns
from server.bounded import network_of

LAST = b"GET /%d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
GET = b"GET /%d HTTP/1.1\r\nHost: x\r\n\r\n"
BODY = bytes(59_000)
HEAD_BYTES = 60_000
SOCKET_BYTES = 16 * 1024  # A small socket buffer, so that the operating system buffers little.
ROUNDS = 200  # iterations of the event loop, enough to handle all received data


class CountingConnection(Connection):
    """A connection that counts the bytes that it reads."""

    received = 0

    def buffer_updated(self, nbytes: int) -> None:
        self.received += nbytes
        super().buffer_updated(nbytes)


class Server:
    """A server that responds at once. If `holds` is true, it responds only when `respond_all` is called."""

    def __init__(self) -> None:
        self.buffer = memoryview(bytearray(READ_BYTES))
        self.date, self.is_shutting_down = b"", False
        self.heads: dict[bytes, Environ] = {}
        self.connections: list[CountingConnection] = []
        self.handled, self.holds, self.turns = 0, False, PipelineTurns()
        self.held: deque[Exchange] = deque()
        self.body = BODY

    def opened(self, connection: Connection) -> None:
        assert isinstance(connection, CountingConnection)
        self.connections.append(connection)

    def closed(self, connection: Connection) -> None:
        """Keep the closed connection, because the tests read its counters."""

    def handle(self, exchange: Exchange) -> None:
        self.handled += 1
        if self.holds:
            self.held.append(exchange)
        else:
            self.respond(exchange)

    def postpone(self, connection: Connection) -> None:
        self.turns.add(connection)

    def respond(self, exchange: Exchange) -> None:
        path = exchange.environ["PATH_INFO"]
        exchange.respond(200, [("Path", path)], self.body)

    def respond_all(self) -> None:
        self.holds = False
        while self.held:
            self.respond(self.held.popleft())


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[socket.socket]:
    loop = asyncio.get_running_loop()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            listener.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
        async with await loop.create_server(lambda: CountingConnection(server), sock=listener):
            with socket.socket() as client:
                for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
                    client.setsockopt(socket.SOL_SOCKET, option, SOCKET_BYTES)
                client.setblocking(False)
                await loop.sock_connect(client, listener.getsockname())
                await until(lambda: bool(server.connections))
                yield client
            for connection in server.connections:
                connection.abort()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0.01)


async def settle() -> None:
    """Let the event loop handle everything that has arrived."""
    for _ in range(ROUNDS):
        await asyncio.sleep(0)


async def send(client: socket.socket, data: bytes) -> None:
    await asyncio.get_running_loop().sock_sendall(client, data)


async def read(client: socket.socket, responses: int = 0) -> bytes:
    """Read the given number of responses, or everything until the server closes the connection."""
    data, loop = bytearray(), asyncio.get_running_loop()
    async with asyncio.timeout(30):
        while not responses or data.count(b"\r\npath: ") < responses or not data.endswith(BODY):
            part = await loop.sock_recv(client, 1 << 16)
            if not part:
                break
            data += part
    return bytes(data)


def paths(data: bytes) -> list[int]:
    return [int(part.partition(b"\r\n")[0]) for part in data.split(b"\r\npath: /")[1:]]


def requests(count: int) -> bytes:
    return b"".join(GET % n for n in range(count))


async def leave_unread(server: Server, client: socket.socket, last: bytes = b"") -> None:
    """Send 60 requests without reading responses, and wait until the server stops handling more of them."""
    await send(client, requests(60) + last)
    await until(lambda: server.handled > 0)
    await settle()


def test_unread_responses_delay_the_next_requests() -> None:
    async def go() -> None:
        server = Server()
        async with connected(server) as client:
            await leave_unread(server, client)
            assert server.handled < 10
            assert paths(await read(client, 60)) == list(range(60))
            await send(client, GET % 7)  # The connection continues to work.
            assert paths(await read(client, 1)) == [7]

    asyncio.run(go())


@pytest.mark.parametrize("holds", [False, True])
def test_any_number_of_requests_may_arrive_at_once(holds: bool) -> None:
    async def go() -> None:
        server, count = Server(), 1000
        server.holds, server.body = holds, b"."
        async with connected(server) as client:
            sending = asyncio.create_task(send(client, requests(count) + LAST % count))
            if holds:
                await until(lambda: len(server.held) == 1)
                await settle()
                assert len(server.connections[0]._waiting) <= MAX_PIPELINED_REQUESTS
                server.respond_all()
            data = await read(client)
            await sending
            assert paths(data) == list(range(count + 1))

    asyncio.run(go())


def test_one_request_is_handled_on_each_pass_of_the_event_loop() -> None:
    async def go() -> None:
        server, count = Server(), 300
        server.body = b"."
        async with connected(server) as client:
            sending = asyncio.create_task(send(client, requests(count) + LAST % count))
            reading = asyncio.create_task(read(client))
            async with asyncio.timeout(30):
                while not reading.done():
                    before = server.handled
                    await asyncio.sleep(0)
                    assert server.handled - before <= 1
            await sending
            assert paths(await reading) == list(range(count + 1))

    asyncio.run(go())


def test_each_client_has_a_turn_on_each_pass() -> None:
    """A client with more connections has no more turns."""

    class Waiting:
        def __init__(self, address: str) -> None:
            self.address, self.requests = address, 2

        def advance(self) -> None:
            order.append(self.address)
            self.requests -= 1
            if self.requests:
                turns.add(self)

    async def go() -> None:
        for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2", "2001:db8::1", "2001:db8::2"):
            turns.add(Waiting(address))
        while len(order) < 10:
            await asyncio.sleep(0)

    order: list[str] = []
    turns = PipelineTurns()
    asyncio.run(asyncio.wait_for(go(), 30))
    clients = [network_of(address) for address in order]
    network = "2001:db8::/64"
    assert [set(clients[:3]), set(clients[3:6])] == [{"127.0.0.1", "127.0.0.2", network}] * 2
    assert [set(clients[6:8]), set(clients[8:])] == [{"127.0.0.1", network}] * 2


def test_repeated_requests_wait_for_the_client_too() -> None:
    async def go() -> None:
        server = Server()
        async with connected(server) as client:
            await send(client, GET % 1)
            await read(client, 1)
            assert server.heads  # The server has cached the head of this request.
            for count in range(20):
                await send(client, GET % 1)
                await until(lambda count=count: server.connections[0].received == len(GET % 1) * (count + 2))
                if server.handled < count + 2:
                    break
            else:
                raise AssertionError("every request was handled")
            await send(client, (GET % 1) * 30)
            assert len(paths(await read(client, count + 31))) == count + 31

    asyncio.run(go())


@pytest.mark.parametrize("end", ["eof", "close", "malformed"])
def test_waiting_requests_are_handled_before_the_connection_closes(end: str) -> None:
    async def go() -> None:
        server, last = Server(), b""
        if end == "close":
            last = LAST % 60
        elif end == "malformed":
            last = b"\0\r\n\r\n"
        async with connected(server) as client:
            await leave_unread(server, client, last)
            if end == "eof":
                client.shutdown(socket.SHUT_WR)
                await settle()
            # The connection is not idle, so it stays open.
            server.connections[0].close_if_stalled(asyncio.get_running_loop().time() + 45)
            assert server.handled < 10
            data = await read(client)
            assert paths(data) == list(range(60 + (end == "close")))
            assert (b"HTTP/1.1 400 " in data) == (end == "malformed")

    asyncio.run(go())


def test_a_server_that_shuts_down_closes_connections_after_the_next_response() -> None:
    async def go() -> None:
        server = Server()
        async with connected(server) as client:
            await leave_unread(server, client)
            handled, server.is_shutting_down = server.handled, True
            server.connections[0].close_if_idle()
            assert paths(await read(client)) == list(range(handled + 1))

    asyncio.run(go())


def test_a_client_that_leaves_ends_its_waiting_requests() -> None:
    async def go() -> None:
        server = Server()
        async with connected(server) as client:
            await leave_unread(server, client)
            handled = server.handled
            client.close()
            await until(lambda: not server.connections[0].is_open)
            await settle()
            assert server.handled == handled

    asyncio.run(go())


def long_head(number: int, *headers: bytes) -> bytes:
    filler = b"X: " + b"x" * HEAD_BYTES
    return b"\r\n".join([b"POST /%d HTTP/1.1" % number, b"Host: x", filler, *headers, b"", b""])


@pytest.mark.parametrize("body", [0, 1_000_000])
def test_heads_and_bodies_behind_a_slow_response_are_left_unread(body: int) -> None:
    async def go() -> None:
        server = Server()
        server.holds = True
        async with connected(server) as client:
            connection = server.connections[0]
            count = 2 if body else MAX_PIPELINED_REQUESTS - 4
            more = [long_head(n, b"Content-Length: %d" % body) + bytes(body) for n in range(1, count)]
            sending = asyncio.create_task(send(client, GET % 0 + b"".join(more)))
            await until(lambda: connection.received > MAX_QUEUED_BYTES)
            await settle()
            assert connection.received <= MAX_QUEUED_BYTES + 2 * READ_BYTES
            assert not sending.done()
            if body:
                server.respond(server.held.popleft())
                await until(lambda: bool(server.held))
                await take(server.held[0], body)
            server.respond_all()
            assert paths(await read(client, count)) == list(range(count))
            await sending

    asyncio.run(go())


def test_a_body_that_is_ignored_is_not_stored() -> None:
    """A body in chunks of two bytes must not occupy more memory than its size, either."""

    async def go() -> None:
        server = Server()
        server.holds = True
        chunks = b"2\r\nab\r\n" * 60_000
        async with connected(server) as client:
            for number, ignored in enumerate((True, False)):
                await send(
                    client, b"GET /%d HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" % number
                )
                await until(lambda: bool(server.held))
                exchange = server.held[0]
                if ignored:
                    exchange.ignore_body()
                await send(client, chunks)
                await until(lambda exchange=exchange: exchange._unread == 120_000)
                assert sys.getsizeof(exchange._body) < (1000 if ignored else 150_000)
                await send(client, b"0\r\n\r\n")
                server.respond(server.held.popleft())
                await read(client, 1)

    asyncio.run(go())


def test_a_closed_connection_leaves_no_cycle() -> None:
    async def go() -> weakref.ref[Connection]:
        server = Server()
        server.holds = True
        async with connected(server) as client:
            await send(client, GET % 1)
            await until(lambda: bool(server.held))
            server.connections[0].abort()
            await until(lambda: not server.connections[0].is_open)
            server.held.clear()
            return weakref.ref(server.connections.pop())

    gc.collect()
    gc.disable()
    try:
        assert asyncio.run(go())() is None
    finally:
        gc.enable()


async def take(exchange: Exchange, size: int) -> None:
    """Read a whole request body."""
    async with asyncio.timeout(30):
        while size:
            size -= len(await exchange.read())
        assert not await exchange.read()


def test_an_idle_connection_keeps_no_head() -> None:
    async def go() -> None:
        server = Server()
        async with connected(server) as client:
            await send(client, long_head(1, b"Content-Length: 0"))
            await read(client, 1)
            assert text_size(vars(server.connections[0])) < 1000

    asyncio.run(go())


def text_size(value: object) -> int:
    """Return the total length of all strings in a nested value."""
    if isinstance(value, bytes | str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(text_size, value.values()))
    return sum(map(text_size, value)) if isinstance(value, list | tuple | deque) else 0
