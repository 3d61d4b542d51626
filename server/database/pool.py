"""Pool of database connections shared by threads."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

MAX_IDLE_CONNECTIONS = 5


class Closable(Protocol):
    """A connection that can be closed."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closable)


class NoConnectionLeftError(TimeoutError):
    """Error raised if all connections of a pool are in use."""


class Pool(Generic[C]):
    """Pool of at most `size` connections."""

    def __init__(
        self,
        size: int,
        connect: Callable[[float], C],
        is_usable: Callable[[C, float], bool],
        is_idle: Callable[[C], bool],
    ) -> None:
        # `connect` and `is_usable` receive a timeout in seconds.
        # `is_idle` is False for a connection with an open transaction.
        self._size, self._connect, self._is_usable, self._is_idle = size, connect, is_usable, is_idle
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[C] = []

    @contextmanager
    def lend(self, timeout_s: float) -> Iterator[C]:
        """Lend a connection until the context ends.

        Raises NoConnectionLeftError if no connection is free within `timeout_s` seconds.
        """
        slots = self._slots
        if not slots.acquire(timeout=timeout_s):
            raise NoConnectionLeftError("all database connections are in use")
        try:
            idle = self._idle
            connection = self._take(timeout_s)
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
        # `lend` closes the connections that are in use.
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forget(self) -> None:
        # This is called in a forked process, where the connections belong to the parent.
        self._slots = threading.BoundedSemaphore(self._size)
        self._idle = []

    def _take(self, timeout_s: float) -> C:
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:  # Another thread took the last one.
                break
            try:
                if self._is_usable(connection, timeout_s):
                    return connection
            except BaseException:
                connection.close()
                raise
            connection.close()
        return self._connect(timeout_s)
