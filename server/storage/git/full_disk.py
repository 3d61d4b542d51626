"""Git commands that store objects, and that leave nothing behind if the disk is full."""

import errno
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import disk_usage
from tempfile import TemporaryDirectory

from server.errors import CommitError, GitError, StorageError
from server.storage.git.command import (
    git,
    git_as_owner,
    is_disk_full_error,
    last_git_process_id,
    object_environment,
)
from server.storage.git.repository import location

FULL_MESSAGE = "The branch can't be written, because the disk is full; free space and try again"
MIN_FREE_BYTES = 200_000_000
# If the process is killed, its folder is left behind. `git gc` deletes old folders with such a name.
_PREFIX = "tmp_objdir-bifolio-"


@contextmanager
def storage_errors() -> Iterator[None]:
    """In a `with` block, raise StorageError instead of GitError or OSError if the disk is full.

    Other OSErrors are raised as GitError.
    """
    try:
        yield
    except GitError as error:
        if is_disk_full_error(error.message):
            raise StorageError(FULL_MESSAGE) from error
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise StorageError(FULL_MESSAGE) from error
        raise GitError(f"git's files can't be written: {error.strerror}") from error


def write_objects(root: Path, *arguments: str, stdin: str = "") -> str | None:
    """Run a git command that stores objects. If the command fails, none of its objects are kept.

    Return its output, or None in the same cases as `git`. Raises GitError, or StorageError if the disk is
    full.
    """
    place = location(root)
    if place is None:
        return git(root, *arguments, stdin=stdin)
    with storage_errors(), object_folder(place.common) as folder:
        try:
            return git(root, *arguments, stdin=stdin, objects=folder)
        except GitError:
            with suppress(OSError):
                (place.folder / f"fast_import_crash_{last_git_process_id()}").unlink()
            raise


def write_objects_as_owner(
    root: Path, *arguments: str, stdin: bytes = b"", environment: Mapping[str, str] | None = None
) -> bytes:
    """Run a git command that stores objects, with the repository's hooks and filters, and return its output.

    Raises CommitError if the command fails.
    """
    try:
        place = location(root)
        if place is None or disk_usage(place.common).free > MIN_FREE_BYTES:
            return git_as_owner(root, *arguments, stdin=stdin, environment=environment)
        with object_folder(place.common) as folder:
            variables = {**(environment or {}), **object_environment(folder)}
            return git_as_owner(root, *arguments, stdin=stdin, environment=variables)
    except OSError as error:
        raise CommitError(f"git's files can't be written: {error.strerror}") from error


@contextmanager
def object_folder(common: Path) -> Iterator[Path]:
    """Yield a temporary folder for git objects, which are moved to the repository at `common` afterwards."""
    objects = common / "objects"
    with TemporaryDirectory(prefix=_PREFIX, dir=objects, ignore_cleanup_errors=True) as name:
        yield Path(name)
        _move(Path(name), objects)


def _move(source: Path, target: Path) -> None:
    """Move objects and packs to another folder.

    The index of a pack is moved last, because git reads the pack as soon as its index exists.
    """
    for folder in source.iterdir():
        if not (target / folder.name).exists():
            with suppress(OSError):  # Another command has created the folder.
                folder.rename(target / folder.name)
                continue
        for file in sorted(folder.iterdir(), key=lambda file: file.suffix == ".idx"):
            os.replace(file, target / folder.name / file.name)
