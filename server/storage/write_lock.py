"""The one lock of a site: whoever changes its files, or compares them with what is known of them, holds it.

It works across threads and processes, and the kernel lets go of it when its holder dies. Beside it
stands the number of writes to the site so far, by which a process notices that somebody wrote who
did not tell it.
"""

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from server.errors import BusyError

WAIT_S = 15.0
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.0005, 0.02


class WriteLock:
    """The lock of a site: that of its folder `root`, and of the file `path`, which has the number of writes.

    The file may be deleted with .quire/ while the lock is held, or not be writable; the folder stays. Both
    are locked, since there are file systems that lock no folders.
    """

    def __init__(self, path: Path, root: Path) -> None:
        self.path, self.root = path, root
        self._threads = threading.Lock()

    @contextmanager
    def held(self, seconds: float = WAIT_S) -> Iterator[None]:
        """Hold the lock. Raises BusyError when it can't be had within so many seconds."""
        deadline = time.monotonic() + seconds
        if not self._threads.acquire(timeout=seconds):
            raise BusyError()
        try:
            with ExitStack() as opened:
                refused = []
                for path, flags in ((self.root, os.O_RDONLY), (self.path, os.O_RDWR | os.O_CREAT)):
                    try:
                        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
                        opened.callback(os.close, descriptor)
                        _lock(descriptor, deadline)
                    except OSError as error:
                        refused.append(error)
                if len(refused) == 2:
                    raise refused[0]
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


def _lock(descriptor: int, deadline: float) -> None:
    pause = _FIRST_PAUSE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise BusyError() from None
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_S)
