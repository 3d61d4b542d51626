"""Fair scheduling of pipelined requests."""

import asyncio
from collections import deque
from typing import Protocol

from server.bounded import network_of


class Pipelined(Protocol):
    """Connection with pipelined requests."""

    address: str  # the client's IP address

    def advance(self) -> None: ...


class PipelineTurns:
    """Queue of connections with pipelined requests.

    Each iteration of the event loop handles one request of each client.
    """

    def __init__(self) -> None:
        self._clients: dict[str, deque[Pipelined]] = {}
        self._is_scheduled = False

    def add(self, connection: Pipelined) -> None:
        """Schedule a call to the connection's `advance`. Do not add the connection again until then."""
        self._clients.setdefault(network_of(connection.address), deque()).append(connection)
        self._schedule()

    def _schedule(self) -> None:
        if self._clients and not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._is_scheduled = False
        for client, queue in list(self._clients.items()):
            connection = queue.popleft()
            if not queue:
                del self._clients[client]
            connection.advance()
        self._schedule()
