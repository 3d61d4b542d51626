"""A pool of connections that threads share, since connecting takes long."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

MAX_IDLE_CONNECTIONS = 5


class Closable(Protocol):
    """A connection, as a pool sees it."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Closable)


class NoConnectionLeftError(TimeoutError):
    """All connections of a pool are in use."""


class Pool(Generic[C]):
    """Up to `size` connections, each for one thread at a time. The last used one is lent first."""

    def __init__(
        self,
        size: int,
        connect: Callable[[float], C],
        is_usable: Callable[[C, float], bool],
        is_idle: Callable[[C], bool],
    ) -> None:
        """`connect` makes a connection within some seconds, and `is_usable` checks one within some seconds.

        `is_idle` returns whether a connection that is given back has no open transaction.
        """
        self._size, self._connect, self._is_usable, self._is_idle = size, connect, is_usable, is_idle
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[C] = []

    @contextmanager
    def lend(self, seconds: float) -> Iterator[C]:
        """Lend a connection to a block; wait up to `seconds` for it.

        Raises NoConnectionLeftError and the errors of `connect` and `is_usable`.
        """
        slots = self._slots
        if not slots.acquire(timeout=seconds):
            raise NoConnectionLeftError("all connections are in use")
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
        """Close idle connections now, and those in use when they are given back."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forget(self) -> None:
        """Drop all connections without closing them: they belong to the process that forked this one."""
        self._slots = threading.BoundedSemaphore(self._size)
        self._idle = []

    def _take(self, seconds: float) -> C:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # Another thread has taken it.
                break
            try:
                if self._is_usable(connection, seconds):
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()
        return self._connect(seconds)
