"""Git commands that write objects, and leave nothing behind if the disk is full."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from server.errors import GitError, StorageError
from server.storage.git.command import git, is_full, last_process_id
from server.storage.git.repository import location

FULL_MESSAGE = "The branch can't be written, because the disk is full; free space and try again"
# If the process is killed, its folder is left behind. `git gc` deletes old folders with such a name.
_PREFIX = "tmp_objdir-bifolio-"


@contextmanager
def storage_errors() -> Iterator[None]:
    """Context manager for git commands that write. Raises StorageError instead of GitError on a full disk."""
    try:
        yield
    except GitError as error:
        if is_full(error.message):
            raise StorageError(FULL_MESSAGE) from error
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(FULL_MESSAGE) from error
        raise GitError(f"git's files can't be written: {error.strerror}") from error


def write_objects(root: Path, *arguments: str, stdin: str = "") -> str | None:
    """Run a git command that writes objects, and return its output.

    The command writes to a temporary folder, from which the objects are moved if it succeeds. So its
    temporary files can be deleted without touching those of other git commands.

    Returns None in the same cases as `git`. Raises GitError, or StorageError if the disk is full.
    """
    place = location(root)
    if place is None:
        return git(root, *arguments, stdin=stdin)
    objects = place.common / "objects"
    with (
        storage_errors(),
        TemporaryDirectory(prefix=_PREFIX, dir=objects, ignore_cleanup_errors=True) as name,
    ):
        folder = Path(name)
        try:
            output = git(root, *arguments, stdin=stdin, objects=folder)
        except GitError:
            with suppress(OSError):
                (place.folder / f"fast_import_crash_{last_process_id()}").unlink()
            raise
        _move(folder, objects)
        return output


def _move(source: Path, target: Path) -> None:
    """Move objects and packs. The index of a pack is moved last, because it makes git read the pack."""
    for folder in source.iterdir():
        if not (target / folder.name).exists():
            with suppress(OSError):  # Another command has created the folder.
                folder.rename(target / folder.name)
                continue
        for file in sorted(folder.iterdir(), key=lambda file: file.suffix == ".idx"):
            os.replace(file, target / folder.name / file.name)
