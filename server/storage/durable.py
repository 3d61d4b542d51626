"""Crash-safe file operations: after a crash, a file has either its old or its new bytes."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

SYNCS_ALL = sys.platform == "linux"  # On other systems, `os.sync` may return before anything is written.


def stage_file(source: Path, temporary: Path, mode: int, *, synced: bool = True) -> Path:
    back_up(source, temporary)  # `source` is kept, because the change may be retried after a rollback.
    os.chmod(temporary, mode)
    if synced:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
    return temporary


def stage(data: bytes, temporary: Path, mode: int, *, synced: bool = True) -> Path:
    """Write `data` to a new file at `temporary`, and return its path. If this fails, delete the file."""
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fchmod(file.fileno(), mode)
            if synced:
                os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def default_mode(path: Path) -> int:
    """Return the permission bits that new files get. To find them, briefly create a file at `path`."""
    # A process can read its umask only by changing it, which would affect its other threads.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
        path.unlink()


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file atomically, without syncing it to disk. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        temporary.replace(path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def create_private_file(path: Path, data: bytes) -> None:
    """Create a file that only its owner can read.

    If the file already exists, it is kept, except on file systems without hard links.
    """
    staged = _stage_private(path.parent, data)
    try:
        os.link(staged, path)
    except FileExistsError:
        pass
    except OSError:  # The file system does not support hard links.
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def replace_private_file(path: Path, data: bytes) -> None:
    """Replace a file atomically, and sync it to disk. Only its owner can read the new file."""
    staged = _stage_private(path.parent, data)
    try:
        staged.replace(path)
        sync_folder(path.parent)
    finally:
        staged.unlink(missing_ok=True)


def _stage_private(folder: Path, data: bytes) -> Path:
    descriptor, name = tempfile.mkstemp(dir=folder)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        os.unlink(name)
        raise
    return Path(name)


def back_up(target: Path, backup: Path) -> None:
    try:
        os.link(target, backup, follow_symlinks=False)
    except OSError:
        shutil.copy2(target, backup, follow_symlinks=False)


def move(temporary: Path, name: str, folder: int) -> None:
    """Move a file to `name` in the folder with the descriptor `folder`, even from another file system."""
    try:
        os.replace(temporary, name, dst_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with temporary.open("rb") as read:
            copy(read, name, folder)
        temporary.unlink(missing_ok=True)


def copy(read: IO[bytes], name: str, folder: int) -> None:
    """Copy an open file atomically to `name` in the folder with the descriptor `folder`."""
    near = f".{name}.{os.getpid()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with open(os.open(near, flags, 0o600, dir_fd=folder), "wb") as written:
            shutil.copyfileobj(read, written)
            written.flush()
            os.fchmod(written.fileno(), stat.S_IMODE(os.fstat(read.fileno()).st_mode))
            os.fsync(written.fileno())
        os.replace(near, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(near, dir_fd=folder)
        raise


def make_folders(folder: Path) -> list[Path]:
    """Create a folder and its missing parents, synced to disk. Return the new folders, outermost first."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
        sync_folder(path.parent)
    return missing[::-1]


def sync_folder(folder: Path) -> None:
    """Sync a folder to disk, so that the renames in it survive a crash."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
