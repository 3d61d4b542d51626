"""Puts files where they belong so that they survive a crash: synced, and renamed in one step."""

import errno
import os
import shutil
import stat
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import IO

SYNCS_ALL = sys.platform == "linux"  # Elsewhere, `os.sync` need not have written anything when it returns.


def take(source: Path, temporary: Path, mode: int, *, synced: bool = True) -> Path:
    """Give a finished file a second name, `temporary`, with a mode; `synced`, unless others are to be first.

    `source` stays, since a change that is taken back is made again from it; who made it removes it.
    """
    back_up(source, temporary)
    os.chmod(temporary, mode)
    if synced:
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
    return temporary


def stage(data: bytes, temporary: Path, mode: int, *, synced: bool = True) -> Path:
    """Write bytes to a new file with a mode, `synced` as by `take`. Raises OSError, and leaves none then."""
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


def mode_of_new(path: Path) -> int:
    """The mode of a new file, which is made for that and removed.

    The umask can be read only by setting it, which other threads would have their files by.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)
        path.unlink()


def replace_file(path: Path, data: bytes) -> None:
    """Give a file new bytes in one step, without a sync: what is lost in a crash can be computed again.

    Raises OSError, and leaves the file as it was then.
    """
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(data)
        beside.replace(path)
    except OSError:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise


def make_once(path: Path, data: bytes) -> None:
    """Make a file that only its owner may read, whole or not at all; where another process makes it too, the
    first stays.
    """
    staged = _stage_private(path.parent, data)
    try:
        os.link(staged, path)
    except FileExistsError:
        pass
    except OSError:  # The file system has no hard links.
        staged.replace(path)
    finally:
        staged.unlink(missing_ok=True)


def replace_private(path: Path, data: bytes) -> None:
    """Replace a file that only its owner may read; after a crash it has the old or the new bytes."""
    staged = _stage_private(path.parent, data)
    try:
        staged.replace(path)
        sync_folder(path.parent)
    finally:
        staged.unlink(missing_ok=True)


def _stage_private(folder: Path, data: bytes) -> Path:
    """Write and sync a temporary file that only its owner may read, which mkstemp ensures."""
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
    """Keep a file, or a link itself, under a second name: linked where the file system can, else copied."""
    try:
        os.link(target, backup, follow_symlinks=False)
    except OSError:
        shutil.copy2(target, backup, follow_symlinks=False)


def move(temporary: Path, name: str, folder: int) -> None:
    """Rename a staged file to a name in an opened folder, also where that is on another file system."""
    try:
        os.replace(temporary, name, dst_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with temporary.open("rb") as read:
            copy(read, name, folder)
        temporary.unlink(missing_ok=True)


def copy(read: IO[bytes], name: str, folder: int) -> None:
    """Let a name in an opened folder be a copy of an open file, in one step."""
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
    """Make a folder and those above it that are missing, all synced; returns those made, topmost last."""
    missing = []
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        path.mkdir()
        sync_folder(path.parent)
    return missing[::-1]


def sync_folder(folder: Path) -> None:
    """Sync the entries of a folder: without it, a crash can undo a rename in it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
