"""Connections that threads take in turns, since to make one takes long."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

KEPT = 5  # connections that nobody uses


class Closable(Protocol):
    """A connection, as a pool sees it."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=Closable)


class NoConnectionLeftError(TimeoutError):
    """Others use all connections that there may be."""


class Pool(Generic[C]):
    """Up to `size` connections, each for one thread at a time. The one that was used last is taken first."""

    def __init__(
        self,
        size: int,
        connect: Callable[[float], C],
        is_usable: Callable[[C, float], bool],
        is_idle: Callable[[C], bool],
    ) -> None:
        """`connect` makes a connection within so many seconds; `is_usable` tells, within so many, whether one
        is still good, and `is_idle` whether it is in no transaction after it was used.
        """
        self._size, self._connect, self._is_usable, self._is_idle = size, connect, is_usable, is_idle
        self._slots = threading.BoundedSemaphore(size)
        self._idle: list[C] = []

    @contextmanager
    def lend(self, seconds: float) -> Iterator[C]:
        """A connection for the block, for which one waits so long. Raises NoConnectionLeftError, and what
        `connect` and `is_usable` raise.
        """
        slots = self._slots
        if not slots.acquire(timeout=seconds):
            raise NoConnectionLeftError("others wait for it")
        try:
            idle = self._idle
            connection = self._take(seconds)
            try:
                yield connection
            finally:
                if idle is self._idle and len(idle) < KEPT and self._is_idle(connection):
                    idle.append(connection)
                else:
                    connection.close()
        finally:
            slots.release()

    def clear(self) -> None:
        """Close all connections, those in use when they are given back."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def forget(self) -> None:
        """Let go of all connections, which are those of the process that this one was forked from."""
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
