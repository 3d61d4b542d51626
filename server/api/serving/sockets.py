"""Sockets of clients: accept, send large bodies, measure what is unsent, and event-stream connections."""

import asyncio
import contextvars
import os
import select
import socket
import struct
import sys
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from fcntl import ioctl
from typing import Any

from server.api.response import Header
from server.events.hub import Hub
from server.events.stream import Stream

# --- accepting ------------------------------------------------------------------------------------

_OPEN_FILES = "/proc/self/fd"


def stop_accepting(listener: socket.socket) -> None:
    """Let no event loop of this process wait for connections on a socket; other processes' do as before.

    It does so on Linux, where the event loops of a process can be found among its open files.
    """
    if not hasattr(select, "epoll"):
        return
    loops, copies = [], []
    for descriptor in map(int, os.listdir(_OPEN_FILES)):
        with suppress(OSError):  # Another thread has closed it meanwhile.
            if os.readlink(f"{_OPEN_FILES}/{descriptor}") == "anon_inode:[eventpoll]":
                loops.append(os.dup(descriptor))
            elif os.path.sameopenfile(descriptor, listener.fileno()):
                copies.append(descriptor)
    for loop in loops:
        with select.epoll.fromfd(loop) as events:
            for copy in copies:
                with suppress(FileNotFoundError):  # It is another event loop that waits for this one.
                    events.unregister(copy)


# --- unsent ---------------------------------------------------------------------------------------

_SIOCOUTQ = 0x5411  # Linux: how many bytes the other side has not acknowledged
_SO_NWRITE = 0x1024  # macOS: the same, as an option of the socket
_INT = struct.Struct("=i")


class Connections:
    """The connections of this process, by the addresses and ports of their clients. For one thread at a time.

    The server does not hand out its sockets; so they are looked for among the open files of the process.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}  # the descriptors of clients that were found before

    def unsent(self, clients: Collection[str]) -> dict[str, int]:
        """How many bytes each client has yet to get; without those that have left."""
        found = {}
        for client, connection in self._find(clients):
            with suppress(OSError):
                found[client] = _unsent(connection)
        return found

    def give_up(self, clients: Collection[str]) -> None:
        """End the connections of clients, and drop what they have not taken."""
        for _, connection in self._find(clients):
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _find(self, clients: Collection[str]) -> Iterator[tuple[str, socket.socket]]:
        """Copies of some connections, each closed after its turn.

        A copy stays the same connection, even where the server closes its own meanwhile.
        """
        known = {client: self._known[client] for client in clients if client in self._known}
        descriptors = list(known.values())
        if len(known) < len(clients):
            descriptors = [int(name) for name in os.listdir("/dev/fd")]
        self._known = {}
        for descriptor in descriptors:
            connection = _copy(descriptor)
            if connection is None:
                continue
            with connection:
                client = _client(connection)
                if client in clients:
                    self._known[client] = descriptor
                    yield client, connection


def _copy(descriptor: int) -> socket.socket | None:
    """A socket by its descriptor; None for any other file."""
    try:
        copy = os.dup(descriptor)
    except OSError:
        return None
    try:
        return socket.socket(fileno=copy)
    except OSError:
        os.close(copy)
        return None


def _client(connection: socket.socket) -> str:
    """The address and the port of the other side, as the server writes them; "" where there is none."""
    try:
        host, port = connection.getpeername()[:2]
    except (OSError, ValueError):
        return ""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _unsent(connection: socket.socket) -> int:
    if sys.platform == "darwin":
        return connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE)
    return int(_INT.unpack(ioctl(connection, _SIOCOUTQ, bytes(_INT.size)))[0])


# --- stream client --------------------------------------------------------------------------------

_CONTEXT = contextvars.copy_context()  # of what is called when a client leaves; one is enough for all


class StreamClient:
    """A client that a stream is sent to; `name` is its address and port."""

    __slots__ = ("_transport", "name")

    def __init__(self, protocol: Any, status: int, headers: list[Header], name: str) -> None:
        self.name = name
        self._transport = protocol.response_stream(status, headers)

    def send(self, data: bytes) -> None:
        """Let granian send some frames."""
        if self._transport is not None:
            self._transport.send_bytes(data)

    def end(self) -> None:
        """End the answer: granian does when nobody has its transport any more."""
        self._transport = None


def begin(hub: Hub, stream: Stream, client: StreamClient, protocol: Any) -> None:
    """Serve a stream through a hub until its client leaves. Call it on the event loop.

    A client that has left already is not counted: granian then returns an awaitable that is done, which
    takes no callback.
    """
    disconnected = protocol.client_disconnect()
    if not hasattr(disconnected, "add_done_callback"):
        client.end()
        return
    close = hub.open(stream, client)
    disconnected.add_done_callback(lambda _: close(), context=_CONTEXT)


# --- sending --------------------------------------------------------------------------------------

LARGE = 1024 * 1024  # bytes of a body up to which granian may keep it
_PART = 512 * 1024  # bytes that are sent at once, about
_LEFT = 128 * 1024  # bytes that may be unsent when the next part is
_PAUSES_S = (0.001, 0.2)  # between two looks at how much is unsent: at first, and at most
_STALLED_S = 60.0  # how long a client may take nothing


async def send_body(body: Iterable[bytes], length: int, client: StreamClient) -> None:
    """Send a body of some bytes, and close it. Who takes nothing for long is given up."""
    connections, left, parts = Connections(), length, _parts(body)
    try:
        while left > 0:
            part = await asyncio.to_thread(next, parts, b"")
            left -= len(part)
            if part:
                client.send(part)
            if not part or not await _is_sent(connections, client.name):
                connections.give_up({client.name})  # It was told of more than it gets.
                return
        client.end()
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


async def _is_sent(connections: Connections, client: str) -> bool:
    """Wait until most has been sent; False where the client has left, or takes nothing."""
    pause, longest = _PAUSES_S
    before, waited = -1, 0.0
    while True:
        await asyncio.sleep(pause)
        unsent = connections.unsent({client}).get(client)
        if unsent is None:
            return False
        if unsent <= _LEFT:
            return True
        waited = waited + pause if unsent == before else 0.0
        if waited > _STALLED_S:
            return False
        before, pause = unsent, min(2 * pause, longest)
