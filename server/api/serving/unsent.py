"""What the system has not been able to send yet to some clients, and how to give a client up.

granian keeps all that it is given, however slowly a client takes it, and does not tell how much that is. But
it hands on to the system whatever that takes, so that while the system has sent everything, nothing is kept.
"""

import os
import socket
import struct
import sys
from collections.abc import Collection, Iterator
from contextlib import suppress
from fcntl import ioctl

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
