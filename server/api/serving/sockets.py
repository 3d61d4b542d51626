"""Acceptor of connections, and a function that counts the bytes that a client has not acknowledged."""

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from fcntl import ioctl
from typing import Any

_SIOCOUTQ = 0x5411  # Linux: ioctl for the number of unacknowledged bytes
_SO_NWRITE = 0x1024  # macOS: socket option for the same number
_INT = struct.Struct("=i")
_BACKOFF_S = 0.2  # Pause after file descriptors or memory have run out.


def unacknowledged_bytes_of(connection: Any) -> int:
    """Return the number of sent bytes that the client has not acknowledged.

    Raises OSError if the connection is closed.
    """
    if sys.platform == "darwin":
        return int(connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE))
    return int(_INT.unpack(ioctl(connection.fileno(), _SIOCOUTQ, bytes(_INT.size)))[0])


class Acceptor:
    """Acceptor of connections from a socket that several processes share. It accepts one at a time."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.BaseProtocol],
        max_connections: int,
        make_room: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._listener, self._make, self._room, self._make_room = listener, make, max_connections, make_room
        self._connecting: set[asyncio.Task[Any]] = set()
        self._listens = self._stopped = False

    def start(self) -> None:
        if not self._listens and not self._stopped and self._room > 0:
            self._loop.add_reader(self._listener, self._accept)
            self._listens = True

    def stop(self) -> None:
        self._stopped = True
        self._pause()

    @property
    def is_full(self) -> bool:
        return self._room <= 0

    def connection_closed(self) -> None:
        self._room += 1
        self.start()

    def _pause(self) -> None:
        if self._listens:
            self._loop.remove_reader(self._listener)
            self._listens = False

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionError):
            return  # Another process was first, or the client has disconnected.
        except OSError:
            self._pause()
            self._loop.call_later(_BACKOFF_S, self.start)
            return
        connection.setblocking(False)
        self._room -= 1
        if self._room <= 0:
            self._pause()
            self._make_room()
        task = self._loop.create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError:  # The client has already disconnected.
            connection.close()
            self.connection_closed()
