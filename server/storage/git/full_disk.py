"""Errors and leftovers of git commands that a full disk stops."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server.errors import GitError, StorageError
from server.storage.git.command import is_full
from server.storage.git.repository import location

FULL_MESSAGE = "The branch can't be written, because the disk is full; free space and try again"
# Files that a git command leaves behind if it can't write an object, and their folders.
_LEFTOVERS = (
    ("", "fast_import_crash_*"),
    ("objects", "tmp_obj_*"),
    ("objects", "??/tmp_obj_*"),
    ("objects/pack", "tmp_pack_*"),
    ("objects/pack", "tmp_idx_*"),
)


@contextmanager
def cleaned_up(root: Path) -> Iterator[None]:
    """Context manager for git commands that write. If they fail, delete the temporary files they left.

    Raises StorageError instead of GitError if the disk is full.
    """
    began = time.time()
    try:
        yield
    except GitError as error:
        # Only files that are as new as these commands. A command of somebody else that is writing at this
        # moment to a full disk fails anyway; on another disk, only crash reports are deleted.
        full = is_full(error.message)
        _remove(root, began, _LEFTOVERS if full else _LEFTOVERS[:1])
        if full:
            raise StorageError(FULL_MESSAGE) from error
        raise


def _remove(root: Path, since: float, leftovers: tuple[tuple[str, str], ...]) -> None:
    place = location(root)
    for folder in {place.folder, place.common} if place else ():
        for inside, pattern in leftovers:
            for path in (folder / inside).glob(pattern):
                with suppress(OSError):
                    if path.stat().st_mtime > since - 1:
                        path.unlink()
