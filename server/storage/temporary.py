"""Temporary files and folders, locked while in use so that leftovers can be recognized and deleted."""

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from server.paths import STATE_FOLDER, incoming_folder
from server.storage.file_lock import FileLock, try_lock

# Younger files may be in use even if they are not locked: the lock is acquired only after a file has been
# created, and some file systems do not support locks.
ABANDONED_AGE_S = 3600.0
FOLDER_PREFIXES = ("merge-", "takeover-", "checkout-")
_FILE_PREFIX = tempfile.gettempprefix()
_FILE_FOLDERS = ("", "incoming", "undo")


@contextmanager
def temporary_folder(root: Path, prefix: str) -> Iterator[Path]:
    """Create a temporary folder, and delete it at the end of a `with` block. Raises OSError."""
    assert prefix in FOLDER_PREFIXES
    with ExitStack() as stack:
        name = tempfile.mkdtemp(prefix=prefix, dir=root / STATE_FOLDER)
        lock = FileLock(Path(name), is_folder=True)
        stack.callback(lock.release)
        stack.callback(shutil.rmtree, name, ignore_errors=True)
        with suppress(OSError):
            lock.acquire()
        yield Path(name)


@contextmanager
def temporary_file(root: Path) -> Iterator[IO[bytes]]:
    with tempfile.NamedTemporaryFile(dir=incoming_folder(root)) as file:
        with suppress(OSError):
            try_lock(file.fileno())
        yield file


def sweep_temporary(root: Path) -> int:
    """Delete temporary files and folders of processes that were killed. Return how many were deleted."""
    state, removed = root / STATE_FOLDER, 0
    if state.is_symlink():
        return removed
    folders = [path for prefix in FOLDER_PREFIXES for path in state.glob(f"{prefix}*")]
    files = [path for name in _FILE_FOLDERS for path in (state / name).glob(f"{_FILE_PREFIX}*")]
    for path in (*folders, *files):
        with suppress(OSError):
            is_folder = path in folders
            if path.is_symlink() or path.is_dir() != is_folder or not _is_old(path):
                continue
            with FileLock(path, is_folder=is_folder).held() as alone:
                if alone and is_folder:
                    shutil.rmtree(path)
                elif alone:
                    path.unlink()
                removed += alone
    return removed


def _is_old(path: Path) -> bool:
    return path.stat().st_mtime < time.time() - ABANDONED_AGE_S
