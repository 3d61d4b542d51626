"""Wake-ups for the process that follows the remote. They are sent through a named pipe in .bifolio/.

Any process of a server for the site can write to the pipe. If no process is following the remote, a wake-up
has no effect.
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
    """The end of the named pipe from which the follower reads."""

    def __init__(self, root: Path) -> None:
        """Open the pipe. Raises OSError."""
        path = state_folder(root) / _PIPE_FILE
        if not _is_pipe(path):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        # Opened for writing too, because otherwise reading would end when the last writer closes the pipe.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def listen(self, call: Callable[[], None]) -> None:
        """Start a thread that calls the function `call` at each wake-up.

        A job can't be used for this, because reading blocks until the pipe contains data.
        """
        self._thread = threading.Thread(target=self._listen, args=(call,), name="wakes", daemon=True)
        self._thread.start()

    def _listen(self, call: Callable[[], None]) -> None:
        while not self._is_closing:
            if self.is_woken(None) and not self._is_closing:
                call()

    def is_woken(self, seconds: float | None = 0.0) -> bool:
        """Wait up to `seconds` for a wake-up, or without a limit if `seconds` is None. Return whether there
        was a wake-up.
        """
        poller = (
            select.poll()
        )  # poll() instead of select(), which fails for descriptors above 1,023 (many clients).
        poller.register(self._pipe, select.POLLIN)
        if not poller.poll(None if seconds is None else seconds * 1000):
            return False
        with suppress(BlockingIOError):
            while len(os.read(self._pipe, 4096)) == 4096:
                pass
        return True

    def close(self) -> None:
        """Stop listening.

        A wake-up that arrives at this moment is lost. This does no harm, because the next follower starts
        with a fetch.
        """
        self._is_closing = True
        if self._thread is not None:
            with suppress(BlockingIOError):  # If the pipe is full, the reader wakes up anyway.
                os.write(self._pipe, b".")
            self._thread.join()
        os.close(self._pipe)


def wake(root: Path) -> None:
    """Tell the process that follows the remote to fetch immediately. If there is no such
    process, do nothing.
    """
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
    """Wake the follower because the remote has a new commit. Pass "" if the commit is unknown.

    If the commit is checked out, a local write has created it, so this function does nothing.
    """
    if not commit or commit != head_commit(root):
        wake(root)


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.lstat().st_mode)
    except OSError:
        return False
