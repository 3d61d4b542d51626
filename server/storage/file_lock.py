"""Exclusive file lock between threads and processes, released when its holder exits."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakSet

_POLL_INTERVAL_S = 0.001


class FileLock:
    """Exclusive lock on a file. Each thread needs its own instance.

    `descriptor` is -1 if the lock is not held.
    """

    def __init__(self, path: Path, *, is_folder: bool = False) -> None:
        self.path, self.descriptor = path, -1
        self._flags = os.O_RDONLY if is_folder else os.O_RDWR | os.O_CREAT

    def acquire(self, wait_s: float = 0.0) -> bool:
        """Acquire the lock within `wait_s` seconds, or return False.

        Raises OSError if the path can't be locked.
        """
        if self.descriptor >= 0:
            return True
        deadline = time.monotonic() + wait_s
        descriptor = os.open(self.path, self._flags | os.O_CLOEXEC, 0o600)
        try:
            while not try_lock(descriptor):
                if time.monotonic() >= deadline:
                    os.close(descriptor)
                    return False
                time.sleep(_POLL_INTERVAL_S)
        except OSError:
            os.close(descriptor)
            raise
        self.descriptor = descriptor
        _held.add(self)
        return True

    def release(self) -> None:
        if self.descriptor >= 0:
            with suppress(OSError):
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)
            self.close()

    def close(self) -> None:
        """Close the file. This releases the lock, unless another process has inherited the open file."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
        self.descriptor = -1
        _held.discard(self)

    @contextmanager
    def held(self, wait_s: float = 0.0) -> Iterator[bool]:
        """Hold the lock during a `with` block. Yields False if it is not acquired within `wait_s` seconds."""
        try:
            yield self.acquire(wait_s)
        finally:
            self.release()


def try_lock(descriptor: int) -> bool:
    """Lock an open file until it is closed. Return False if it is already locked. Raises OSError."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _close_inherited() -> None:
    # Otherwise, a forked process would keep its parent's locks, even after the parent has released them.
    for lock in tuple(_held):
        lock.close()


_held: WeakSet[FileLock] = WeakSet()
os.register_at_fork(after_in_child=_close_inherited)
