"""The site's write lock. A process must hold it while it changes files, so only one write at a time is
carried out.

The lock works between threads and between processes. If a process dies, the kernel releases the lock. The
lock file also contains the number of writes so far. If this number has changed, another process has written
to the site.
"""

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
    """The write lock of the site at `root`. The file `path` contains the number of writes.

    To acquire the write lock, a process locks the folder `root`. The file at `path` is not used for this,
    because it may be read-only or may be deleted. It has a different purpose: a writer that is waiting for
    the folder holds a lock on the file. This prevents a process that has just released the folder from
    locking it again before the waiting writer. Only on file systems that can't lock folders, the lock on the
    file is the write lock.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self._threads = threading.Lock()

    @contextmanager
    def held(self, seconds: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Context manager: hold the write lock. Raises BusyError if it can't be acquired within `seconds`.
        Raises OSError if neither the folder nor the file can be locked.
        """
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise BusyError()
        try:
            with ExitStack() as held:
                with ExitStack() as turn:
                    refused = _acquire(FileLock(self.path), deadline, turn)
                    error = _acquire(FileLock(self.root, is_folder=True), deadline, held)
                    if error and refused:
                        raise error
                    if error:
                        held.push(turn.pop_all())
                yield
        finally:
            self._threads.release()

    @property
    def number(self) -> int:
        """Return how many writes have changed the site's files so far.

        Return 0 if the number can't be read.
        """
        try:
            data = self.path.read_bytes()
        except OSError:
            return 0
        return int(data) if data.strip().isdigit() else 0

    def count(self, number: int) -> None:
        """Store how many writes have changed the site's files. Requires the write lock. Raises OSError."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, b"%-20d" % number, 0)
        finally:
            os.close(descriptor)


def _acquire(lock: FileLock, deadline: float, held: ExitStack) -> OSError | None:
    """Acquire a lock, and release it when `held` is closed. Raises BusyError after the deadline.

    If the lock can't be used because of an OSError, the OSError is returned, not raised.
    """
    try:
        if not lock.acquire(deadline - time.monotonic()):
            raise BusyError()
    except OSError as error:
        return error
    held.callback(lock.release)
    return None
