"""The site's write lock, which puts writes in order: a write holds it while it changes files.

It works across threads and processes; the kernel releases it when the holder dies. A file beside it counts
the site's writes, so a process notices writes of other processes.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from server.errors import BusyError
from server.storage.file_lock import FileLock

LOCK_TIMEOUT_S = 10.0  # A worker that holds the lock for longer has hung and is replaced.


class WriteLock:
    """The lock on a site's folder `root`, with the write counter in the file `path`.

    A writer holds the file's lock while it waits for the folder's, so a releasing writer can't overtake the
    waiting ones. Some file systems can't lock folders: there the file's lock is used, although the file may
    be read-only or deleted with .bifolio/.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self._threads = threading.Lock()

    @contextmanager
    def held(self, seconds: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Context manager: hold the lock. Raises BusyError after `seconds`."""
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
        """Return the number of writes so far; 0 for a read-only site."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return 0
        return int(data) if data.strip().isdigit() else 0

    def count(self, number: int) -> None:
        """Set the number of writes, while the lock is held. Raises OSError."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, b"%-20d" % number, 0)
        finally:
            os.close(descriptor)


def _acquire(lock: FileLock, deadline: float, held: ExitStack) -> OSError | None:
    """Acquire a lock until `held` closes. Returns an OSError instead of raising it. Raises BusyError."""
    try:
        if not lock.acquire(deadline - time.monotonic()):
            raise BusyError()
    except OSError as error:
        return error
    held.callback(lock.release)
    return None
