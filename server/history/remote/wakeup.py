"""Named pipe that wakes up the follower, the process that fetches new commits."""

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


class WakeupPipe:
    """The read end of the pipe, at which the follower waits."""

    def __init__(self, root: Path) -> None:
        path = state_folder(root) / _PIPE_FILE
        if not _is_pipe(path):
            path.unlink(missing_ok=True)
            os.mkfifo(path, 0o600)
        # Also opened for writing. Otherwise, reading would end when the last writer closes the pipe.
        self._pipe = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._thread: threading.Thread | None = None
        self._is_closing = False

    def listen(self, call: Callable[[], None]) -> None:
        # Reading blocks, so a job can't do this.
        self._thread = threading.Thread(target=self._listen, args=(call,), name="wakes", daemon=True)
        self._thread.start()

    def _listen(self, call: Callable[[], None]) -> None:
        while not self._is_closing:
            if self.wait_for_wakeup(None) and not self._is_closing:
                call()

    def wait_for_wakeup(self, timeout_s: float | None = 0.0) -> bool:
        """Wait for a wake-up, at most `timeout_s` seconds (None for no limit). Return whether one arrived."""
        # Unlike select(), poll() accepts descriptors above 1,023, which occur with many clients.
        poller = select.poll()
        poller.register(self._pipe, select.POLLIN)
        if not poller.poll(None if timeout_s is None else timeout_s * 1000):
            return False
        with suppress(BlockingIOError):
            while len(os.read(self._pipe, 4096)) == 4096:
                pass
        return True

    def close(self) -> None:
        # A wake-up that is lost now does no harm: the next follower starts with a fetch.
        self._is_closing = True
        if self._thread is not None:
            with suppress(BlockingIOError):  # If the pipe is full, the reader wakes up anyway.
                os.write(self._pipe, b".")
            self._thread.join()
        os.close(self._pipe)


def wake(root: Path) -> None:
    """Tell the follower to fetch now. If no follower is running, do nothing."""
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
    # If the commit is checked out, it comes from a local write, so the follower need not fetch.
    if not commit or commit != head_commit(root):
        wake(root)


def _is_pipe(path: Path) -> bool:
    try:
        return stat.S_ISFIFO(path.lstat().st_mode)
    except OSError:
        return False
