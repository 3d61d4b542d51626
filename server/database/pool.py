"""Pool of database connections that threads share."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

MAX_IDLE_CONNECTIONS = 5


class Closable(Protocol):
    """Interface to a connection that a pool can close."""

    def close(self) -> None:
        """Close the connection."""


C = TypeVar("C", bound=Closable)


class NoConnectionLeftError(TimeoutError):
    """Raised if all connections in a pool are in use."""


class Pool(Generic[C]):
    """Pool of at most `size` connections.

    Each connection is used by one thread at a time. Of the connections that are not in use, the one that was
    used last is reused first.
    """

    def __init__(
        self,
        size: int,
        connect: Callable[[float], C],
        is_usable: Callable[[C, float], bool],
        is_idle: Callable[[C], bool],
    ) -> None:
        """Create an empty pool. `connect` creates a connection.

        `is_usable` checks whether a connection still works. `connect` and `is_usable` receive the number of
        seconds that they may take. `is_idle` returns whether a connection has no open transaction.
        """
        self._size, self._connect, self._is_usable, self._is_idle = size, connect, is_usable, is_idle
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[C] = []

    @contextmanager
    def lend(self, seconds: float) -> Iterator[C]:
        """Context manager: lend a connection to the block. Waits up to `seconds` until a connection is free.

        Raises NoConnectionLeftError, and the errors of `connect` and `is_usable`.
        """
        slots = self._slots
        if not slots.acquire(timeout=seconds):
            raise NoConnectionLeftError("all database connections are in use")
        try:
            idle = self._idle
            connection = self._take(seconds)
            try:
                yield connection
            finally:
                if idle is self._idle and len(idle) < MAX_IDLE_CONNECTIONS and self._is_idle(connection):
                    idle.append(connection)
                else:
                    connection.close()
        finally:
            slots.release()

    def clear(self) -> None:
        """Close all connections. Each connection that is in use is closed when its block has ended."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forget(self) -> None:
        """Remove all connections from the pool of a forked process. They are not closed, because they belong
        to the parent process.
        """
        self._slots = threading.BoundedSemaphore(self._size)
        self._idle = []

    def _take(self, seconds: float) -> C:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # Another thread has taken the last free connection.
                break
            try:
                if self._is_usable(connection, seconds):
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()
        return self._connect(seconds)
