"""Wakes the process that follows the remote: by a pipe in .quire/, into which any process may write.

It has the name of a file, so that whoever is told of a push need not know which process that is, nor be of
the same server. Where nobody follows, nothing happens.
"""

import os
import select
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from server.paths import FOLDER, state_folder
from server.storage.git.refs import head_commit

_PIPE = "following.pipe"
_LOOK_S = 0.25  # how often who waits looks whether it is over


class Pipe:
    """The end of the pipe at which one waits."""

    def __init__(self, root: Path) -> None:
        """Raises OSError."""
        path = state_folder(root) / _PIPE
        if not _is_pipe(path):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        # Opened for writing as well, it is never at its end when the last writer has gone.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)

    def wait(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """Wait until somebody wakes who waits, for so long, or until it is over; whether somebody has."""
        deadline = time.monotonic() + seconds
        while not is_over():
            left = deadline - time.monotonic()
            if self._is_woken(min(max(left, 0.0), _LOOK_S)):
                return True
            if left <= 0:
                return False
        return False

    def _is_woken(self, seconds: float) -> bool:
        waiting = select.poll()  # select takes no descriptor above 1,023; a server of many clients has such.
        waiting.register(self._pipe, select.POLLIN)
        if not waiting.poll(seconds * 1000):
            return False
        with suppress(BlockingIOError):
            while len(os.read(self._pipe, 4096)) == 4096:
                pass
        return True

    def close(self) -> None:
        """Wait no more."""
        os.close(self._pipe)


def wake(root: Path) -> None:
    """Have the remote of the site at `root` asked at once, if a process follows it."""
    with suppress(OSError):
        path = root / FOLDER / _PIPE
        if not _is_pipe(path):
            return
        pipe = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(pipe, b".")
        finally:
            os.close(pipe)


def wake_for(root: Path, commit: str) -> None:
    """Do so where a commit is told of, "" for any; not where it is checked out: a write here has made it."""
    if not commit or commit != head_commit(root):
        wake(root)


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.lstat().st_mode)
    except OSError:
        return False
