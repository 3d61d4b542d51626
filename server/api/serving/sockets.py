"""Accepts connections from a shared listener, and counts the bytes that a client has not acknowledged."""

import asyncio
import socket
import struct
import sys
from collections.abc import Callable
from fcntl import ioctl
from typing import Any

_SIOCOUTQ = 0x5411  # Linux: the number of unacknowledged bytes
_SO_NWRITE = 0x1024  # macOS: the same, as a socket option
_INT = struct.Struct("=i")
_BACKOFF_S = 0.2  # After a lack of descriptors or memory.


def unsent_bytes(connection: Any) -> int:
    """Return how many bytes a client has not acknowledged. Raises OSError if the socket is closed."""
    if sys.platform == "darwin":
        return int(connection.getsockopt(socket.SOL_SOCKET, _SO_NWRITE))
    return int(_INT.unpack(ioctl(connection.fileno(), _SIOCOUTQ, bytes(_INT.size)))[0])


class Acceptor:
    """Accepts connections from a listener shared with other processes, up to a limit.

    It accepts one at a time, so an idle process gets the next while this one is busy.
    """

    def __init__(self, listener: socket.socket, make: Callable[[], asyncio.BaseProtocol], most: int) -> None:
        """`make` returns the protocol of a new connection; `most` limits the open connections."""
        self._loop = asyncio.get_running_loop()
        self._listener, self._make, self._room = listener, make, most
        self._connecting: set[asyncio.Task[Any]] = set()
        self._listens = self._stopped = False

    def start(self) -> None:
        """Start accepting connections."""
        if not self._listens and not self._stopped and self._room > 0:
            self._loop.add_reader(self._listener, self._accept)
            self._listens = True

    def stop(self) -> None:
        """Stop accepting; other processes continue."""
        self._stopped = True
        self._pause()

    def left(self) -> None:
        """Make room for another connection after one has closed."""
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
            return  # Another process accepted it first, or the client disconnected.
        except OSError:
            self._pause()
            self._loop.call_later(_BACKOFF_S, self.start)
            return
        connection.setblocking(False)
        self._room -= 1
        if self._room <= 0:
            self._pause()
        task = self._loop.create_task(self._connect(connection))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError:  # The client disconnected.
            connection.close()
            self.left()
