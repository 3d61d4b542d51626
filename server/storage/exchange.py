"""System calls that replace a file and keep the old one for comparison.

A program may save a file between the last check and the replacement. So renameat2 exchanges the new and the
old file atomically, and the old one is checked afterwards. If the system lacks renameat2, the old file gets a
second name (hard link) just before the new one is renamed over it.
"""

import ctypes
import errno
import fcntl
import os
import signal
import stat
import sys
import time
from contextlib import ExitStack, suppress
from io import BufferedReader
from pathlib import Path

from server.storage.durable import back_up, move
from server.storage.files import FileMark, file_mark, link_mark

WRITER_TIMEOUT_S = 0.1  # How long to wait for a program that has the file open for writing.
_POLL_INTERVAL_S = 0.002
_NOREPLACE, _EXCHANGE = 1, 2  # the flags of renameat2
# The system or its file system has no such call.
_UNSUPPORTED_ERRNOS = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_AT_FDCWD = -100


def exchange(aside: Path, target: Path, folder: int) -> bool:
    """Swap `aside` and the target, a file in an opened folder, atomically. Raises OSError.

    Returns False if the system can't. Then `aside` is a hard link or copy of the old target, made just before
    it was replaced.
    """
    # With the target first, watchers of its folder see it deleted and then created.
    if _rename((target.name, folder), (str(aside), _AT_FDCWD), _EXCHANGE):
        return True
    former = aside.with_suffix(".former")
    former.unlink(missing_ok=True)  # of a writer that was killed here
    back_up(target, former)
    move(aside, target.name, folder)
    os.replace(former, aside)
    return False


def put_new(aside: Path, target: Path, folder: int) -> None:
    """Rename a file to a new name in an opened folder. Raises OSError, FileExistsError for a taken name."""
    if _rename((str(aside), _AT_FDCWD), (target.name, folder), _NOREPLACE):
        return
    try:
        os.link(aside, target.name, dst_dir_fd=folder)
        os.unlink(aside)
    except FileExistsError:
        raise
    except OSError:  # The file system has no hard links.
        move(aside, target.name, folder)


def move_aside(target: Path, folder: int, aside: Path) -> bool:
    """Move a target in an opened folder to `aside`; False if other file systems made that a copy."""
    try:
        os.rename(target.name, aside, src_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        back_up(target, aside)
        os.unlink(target.name, dir_fd=folder)
        return False
    return True


class Reader:
    """A file open for reading that can detect programs writing to it in place.

    On Linux it can hold a lease: a program that opens the file for writing then waits until `release` or
    close.
    """

    def __init__(self, file: BufferedReader) -> None:
        self.file = file
        self._held = False

    @property
    def mark(self) -> FileMark:
        return file_mark(os.fstat(self.file.fileno()))

    def read(self) -> bytes:
        self.file.seek(0)
        return self.file.read()

    def has_bytes(self, data: bytes | None) -> bool:
        """Whether the file holds these bytes; True for None, which means unknown."""
        return data is None or self.read() == data

    def hold(self, wait_s: float = WRITER_TIMEOUT_S) -> bool:
        """Take a lease if possible. False if a writer keeps the file open longer than `wait_s` seconds."""
        deadline = time.monotonic() + wait_s
        while (refused := self._lease()) == errno.EAGAIN:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL_S)
        self._held = not refused
        return True

    @property
    def has_waiting_writer(self) -> bool:
        """Whether a program waits for the lease, or could have opened the file after the lease timed out."""
        return self._held and fcntl.fcntl(self.file.fileno(), fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def release(self) -> None:
        """Let other programs open the file for writing again."""
        if self._held:
            self._held = False
            with suppress(OSError):
                fcntl.fcntl(self.file.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def _lease(self) -> int:
        """Request a lease, which the kernel grants only if no program has the file open for writing.

        Returns the errno, 0 for success. When the lease breaks, this process gets SIGURG, which does nothing.
        """
        if not hasattr(fcntl, "F_SETLEASE"):
            return errno.ENOSYS
        try:
            fcntl.fcntl(self.file.fileno(), fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(self.file.fileno(), fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return error.errno or errno.ENOSYS
        return 0


def open_reader(path: Path, held: ExitStack) -> Reader | None:
    """Open a regular file until `held` closes. Returns None for a link, a special or an unreadable file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    file = held.enter_context(os.fdopen(descriptor, "rb"))
    return Reader(file) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def is_unchanged(path: Path, before: FileMark, data: bytes | None) -> bool:
    """Whether a file or link has this mark and these bytes, and no program is about to change it.

    `data` catches edits of equal size within one tick of the clock; None skips that check.
    """
    with ExitStack() as held:
        reader = open_reader(path, held)
        if reader is None:
            return link_mark(path) == before
        is_same = reader.hold() and reader.mark == before and reader.has_bytes(data)
        return is_same and not reader.has_waiting_writer


def _rename(source: tuple[str, int], target: tuple[str, int], flags: int) -> bool:
    """Call renameat2; return False if the system does not support it. Raises OSError."""
    if _renameat2 is None:
        return False
    sys.audit("os.rename", source[0], target[0], source[1], target[1])
    if not _renameat2(source[1], os.fsencode(source[0]), target[1], os.fsencode(target[0]), flags):
        return True
    number = ctypes.get_errno()
    if number in _UNSUPPORTED_ERRNOS or number == errno.EXDEV:
        return False
    raise OSError(number, os.strerror(number), source[0], None, target[0])


_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
