"""The one lock of a site, which puts its writes in order: each write holds it while it changes files.

It works across threads and processes, and the kernel releases it when its holder dies. The file beside it
counts the writes to the site. By this number a process notices that another process wrote. `site.site`
prepares a write anew that another write has overtaken.
"""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from server.errors import BusyError
from server.storage.file_lock import FileLock

LOCK_TIMEOUT_S = 10.0  # A worker that holds the lock for longer is hung, and is replaced.


class WriteLock:
    """The lock of a site, on its folder `root`. The file `path` has the number of writes.

    A waiting write holds the lock of the file while it waits for the folder, so that a writer that releases
    the folder can't take it again before the waiting ones. Some file systems can't lock folders. There the
    file is locked instead, though it may be deleted with .bifolio/ or be read-only.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self._threads = threading.Lock()

    @contextmanager
    def held(self, seconds: float = LOCK_TIMEOUT_S) -> Iterator[None]:
        """Hold the lock. Raises BusyError when it can't be had within so many seconds."""
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
        """How many writes there have been; 0 for a site that can't be written to."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return 0
        return int(data) if data.strip().isdigit() else 0

    def count(self, number: int) -> None:
        """Let `number` be that of the last write; call it while the lock is held. Raises OSError."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(descriptor, b"%-20d" % number, 0)
        finally:
            os.close(descriptor)


def _acquire(lock: FileLock, deadline: float, held: ExitStack) -> OSError | None:
    """Acquire a lock for as long as `held` is open; return the error if it can't be. Raises BusyError."""
    try:
        if not lock.acquire(deadline - time.monotonic()):
            raise BusyError()
    except OSError as error:
        return error
    held.callback(lock.release)
    return None
