"""Lock that allows only one writer at a time to change a site's files."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from server.errors import BusyError
from server.storage.file_lock import FileLock

LOCK_TIMEOUT_S = 10.0  # A worker that holds the lock longer than this is considered hung and is replaced.


class WriteLock:
    """The write lock of a site. Its file contains the number of writes, which other processes read."""

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self._threads = threading.Lock()

    @contextmanager
    def held(self, timeout_s: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Hold the lock in a `with` block. Raises BusyError after `timeout_s` seconds, or OSError."""
        deadline = time.monotonic() + timeout_s
        if not self._threads.acquire(timeout=timeout_s):
            raise BusyError()
        try:
            with ExitStack() as held:
                # The lock on the folder is the write lock, because the file may be read-only or deleted.
                # While a writer waits for the folder, it locks the file. The previous writer then can't lock
                # the folder again before this writer.
                with ExitStack() as turn:
                    refused = _acquire(FileLock(self.path), deadline, turn)
                    error = _acquire(FileLock(self.root, is_folder=True), deadline, held)
                    if error and refused:
                        raise error
                    if error:  # The file system can't lock folders.
                        held.push(turn.pop_all())
                yield
        finally:
            self._threads.release()

    @property
    def counter(self) -> int:
        try:
            data = self.path.read_bytes()
        except OSError:
            return 0
        return int(data) if data.strip().isdigit() else 0

    def set_counter(self, number: int) -> None:
        """Set the number of writes. The caller must hold the lock."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, b"%-20d" % number, 0)
        finally:
            os.close(descriptor)


def _acquire(lock: FileLock, deadline: float, stack: ExitStack) -> OSError | None:
    """Acquire a lock, which is held until `stack` is closed.

    Return the OSError if the path can't be locked. Raises BusyError after the deadline.
    """
    try:
        if not lock.acquire(deadline - time.monotonic()):
            raise BusyError()
    except OSError as error:
        return error
    stack.callback(lock.release)
    return None
