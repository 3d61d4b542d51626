"""Helper processes that are killed when the server exits."""

import errno
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

PARENT_POLL_INTERVAL_S = 0.5  # interval between checks that the parent process is alive
END_TIMEOUT_S = 1.0  # how long to wait until a killed helper ends; a slow disk can delay it


class _Helpers:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.running: set[subprocess.Popen[bytes]] = set()
        self.is_ending = False


_helpers = _Helpers()


def _forget_inherited() -> None:
    global _helpers
    _helpers = _Helpers()


os.register_at_fork(after_in_child=_forget_inherited)


def start_helper(command: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start a helper process. When it has ended, the caller must pass it to `forget_helper`.

    `options` are those of `subprocess.Popen`. Raises OSError if this fails or this process is exiting.
    """
    with _helpers.lock:
        require_running()
        # Ctrl-C reaches only the server, which then kills its helpers.
        process = subprocess.Popen(command, start_new_session=True, **options)
        _helpers.running.add(process)
    return process


def forget_helper(process: subprocess.Popen[bytes]) -> None:
    _helpers.running.discard(process)


@contextmanager
def helper(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Start a helper process, and kill it at the end of a `with` block. Raises OSError if this fails."""
    process = start_helper(command, **options)
    try:
        with process:  # This closes the process's pipes at the end.
            try:
                yield process
            finally:
                process.kill()
    finally:
        forget_helper(process)


def require_running() -> None:
    if _helpers.is_ending:
        raise OSError(errno.ECANCELED, "the server is stopping")


def end_helpers() -> None:
    """Kill all helpers, and prevent new helpers from starting. Called before this process exits."""
    with _helpers.lock:
        _helpers.is_ending = True
        running = list(_helpers.running)
    for process in running:
        process.kill()
    for process in running:
        with suppress(subprocess.TimeoutExpired):
            process.wait(END_TIMEOUT_S)


def end_with_parent() -> None:
    threading.Thread(target=_exit_after, args=(os.getppid(),), daemon=True).start()


def _exit_after(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_INTERVAL_S)
    os._exit(1)
