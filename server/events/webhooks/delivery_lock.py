"""The lock of webhooks: one process delivers those of a site, also if several servers have it."""

import fcntl
import os
from pathlib import Path

from server.paths import state_folder


class DeliveryLock:
    """A lock that a process loses when it ends, and that those which it forks do not have."""

    def __init__(self, root: Path) -> None:
        self._root, self._descriptor, self._is_held = root, -1, False

    def acquire(self) -> bool:
        """Take the lock unless another process has it, or the disk refuses; return whether it is held."""
        if self._is_held:
            return True
        try:
            if self._descriptor < 0:
                self._descriptor = _open(self._root)
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        self._is_held = True
        return True

    def release(self) -> None:
        """Let another process have the lock."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
        self._descriptor, self._is_held = -1, False


def _open(root: Path) -> int:
    folder = state_folder(root) / "webhooks"
    folder.mkdir(mode=0o700, exist_ok=True)
    return os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
