"""Fair order of pipelined requests: requests that a client has sent without waiting for the responses."""

import asyncio
from collections import deque
from typing import Protocol

from server.bounded import network_of


class Pipelined(Protocol):
    """Interface to a connection with pipelined requests."""

    address: str  # the client's IP address

    def advance(self) -> None:
        """Handle the next request. Does nothing if there is none."""


class PipelineTurns:
    """Queues of connections with pipelined requests, one queue for each client (IPv4 address or IPv6 /64
    network).

    On each pass of the event loop, one request from each client is handled. Otherwise, a client that sends
    thousands of requests at once would delay all other clients until the last one has been handled.
    """

    def __init__(self) -> None:
        self._clients: dict[str, deque[Pipelined]] = {}
        self._is_scheduled = False

    def add(self, connection: Pipelined) -> None:
        """Schedule the connection's next request. A connection must not be added again before that."""
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
