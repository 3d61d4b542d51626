"""Lets one process alone deliver the webhooks of a site, also where several servers have it."""

import fcntl
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from server.paths import state_folder

PAUSE_S = 0.2


@contextmanager
def alone(root: Path, stop: threading.Event) -> Iterator[None]:
    """A block that one process is in at a time; begun without that once `stop` is set.

    The lock is the kind that a process loses when it ends, and that those which it forks do not have.
    """
    descriptor = -1
    try:
        while not stop.is_set():
            try:
                if descriptor < 0:
                    descriptor = _open(root)
                fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:  # Another process has it, or the disk is full.
                stop.wait(PAUSE_S)
        yield
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _open(root: Path) -> int:
    folder = state_folder(root) / "webhooks"
    folder.mkdir(mode=0o700, exist_ok=True)
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
