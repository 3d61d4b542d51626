"""Wakes the process that follows the remote: by a pipe in .bifolio/, into which any process may write.

It has the name of a file, so that whoever is told of a push need not know which process that is, nor be of
the same server. Where nobody follows, nothing happens.
"""

import os
import select
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from server.paths import STATE_FOLDER, state_folder
from server.storage.git.refs import head_commit

_PIPE_FILE = "following.pipe"


class Pipe:
    """The end of the pipe at which one is woken."""

    def __init__(self, root: Path) -> None:
        """Raises OSError."""
        path = state_folder(root) / _PIPE_FILE
        if not _is_pipe(path):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        # Opened for writing as well, it is never at its end when the last writer has gone.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def listen(self, call: Callable[[], None]) -> None:
        """Call a function whenever somebody wakes.

        A thread does that, which is no job: it blocks in the system until the pipe has something.
        """
        self._thread = threading.Thread(target=self._listen, args=(call,), name="wakes", daemon=True)
        self._thread.start()

    def _listen(self, call: Callable[[], None]) -> None:
        while not self._is_closing:
            if self.is_woken(None) and not self._is_closing:
                call()

    def is_woken(self, seconds: float | None = 0.0) -> bool:
        """Return whether somebody has woken, within some seconds (None: wait until somebody does)."""
        waiting = select.poll()  # select takes no descriptor above 1,023; a server of many clients has such.
        waiting.register(self._pipe, select.POLLIN)
        if not waiting.poll(None if seconds is None else seconds * 1000):
            return False
        with suppress(BlockingIOError):
            while len(os.read(self._pipe, 4096)) == 4096:
                pass
        return True

    def close(self) -> None:
        """Stop listening. A wake that comes meanwhile is lost, and so left to the one who follows next."""
        self._is_closing = True
        if self._thread is not None:
            with suppress(BlockingIOError):  # It is full, and so is read.
                os.write(self._pipe, b".")
            self._thread.join()
        os.close(self._pipe)


def wake(root: Path) -> None:
    """Have the remote of the site at `root` asked at once, if a process follows it."""
    with suppress(OSError):
        path = root / STATE_FOLDER / _PIPE_FILE
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
