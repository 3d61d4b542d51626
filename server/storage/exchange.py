"""System calls that replace a file but keep the old file, so that late edits to it can be detected."""

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
_NOREPLACE, _EXCHANGE = 1, 2  # flags for renameat2
# The system or file system does not support renameat2.
_UNSUPPORTED_ERRNOS = frozenset({errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP})
_AT_FDCWD = -100


def exchange(journal_file: Path, target: Path, folder: int) -> bool:
    """Swap `journal_file` with `target`. `folder` is the descriptor of the target's folder.

    Return False if the swap was not atomic. In this case, `journal_file` may be a copy of the old file.
    """
    # The order of the arguments matters: programs that watch the target's folder see a deletion, then a
    # creation.
    if _rename((target.name, folder), (str(journal_file), _AT_FDCWD), _EXCHANGE):
        return True
    former = journal_file.with_suffix(".former")
    former.unlink(missing_ok=True)  # A writer that was killed may have left this file.
    back_up(target, former)
    move(journal_file, target.name, folder)
    os.replace(former, journal_file)
    return False


def put_new(staged_file: Path, target: Path, folder: int) -> None:
    """Move a new file to `target`. `folder` is the descriptor of the target's folder.

    Raises FileExistsError if `target` already exists and the file system supports this check.
    """
    if _rename((str(staged_file), _AT_FDCWD), (target.name, folder), _NOREPLACE):
        return
    try:
        os.link(staged_file, target.name, dst_dir_fd=folder)
        os.unlink(staged_file)
    except FileExistsError:
        raise
    except OSError:  # The file system does not support hard links.
        move(staged_file, target.name, folder)


def move_aside(target: Path, folder: int, destination: Path) -> bool:
    """Move `target` to `destination`. `folder` is the descriptor of the target's folder.

    Return False if the file had to be copied and deleted instead.
    """
    try:
        os.rename(target.name, destination, src_dir_fd=folder)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        back_up(target, destination)
        os.unlink(target.name, dir_fd=folder)
        return False
    return True


class Reader:
    """Open file. On Linux, a kernel lease on the file detects programs that open it for writing."""

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
        return data is None or self.read() == data

    def acquire_lease(self, wait_s: float = WRITER_TIMEOUT_S) -> bool:
        """Acquire a lease, if the system supports it.

        Return False if another program still has the file open for writing after `wait_s` seconds.
        """
        deadline = time.monotonic() + wait_s
        while (refused := self._request_lease()) == errno.EAGAIN:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL_S)
        self._held = not refused
        return True

    @property
    def has_waiting_writer(self) -> bool:
        return self._held and fcntl.fcntl(self.file.fileno(), fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def release(self) -> None:
        if self._held:
            self._held = False
            with suppress(OSError):
                fcntl.fcntl(self.file.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def _request_lease(self) -> int:
        if not hasattr(fcntl, "F_SETLEASE"):
            return errno.ENOSYS
        try:
            # The kernel sends SIGURG when another program opens the file. By default, this signal has no
            # effect.
            fcntl.fcntl(self.file.fileno(), fcntl.F_SETSIG, signal.SIGURG)
            fcntl.fcntl(self.file.fileno(), fcntl.F_SETLEASE, fcntl.F_RDLCK)
        except OSError as error:
            return error.errno or errno.ENOSYS
        return 0


def open_reader(path: Path, stack: ExitStack) -> Reader | None:
    """Open a regular file, which is closed together with `stack`. Return None if it can't be opened."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    file = stack.enter_context(os.fdopen(descriptor, "rb"))
    return Reader(file) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def is_unchanged(path: Path, before: FileMark, data: bytes | None) -> bool:
    """Return True if a file still has the mark `before` and the bytes `data`, and is not being written to.

    If `data` is None, the file may contain any bytes.
    """
    with ExitStack() as held:
        reader = open_reader(path, held)
        if reader is None:
            return link_mark(path) == before
        # Compare the content, too: an edit within the same clock tick may leave size and mtime unchanged.
        is_same = reader.acquire_lease() and reader.mark == before and reader.has_bytes(data)
        return is_same and not reader.has_waiting_writer


def _rename(source: tuple[str, int], target: tuple[str, int], flags: int) -> bool:
    """Rename a file with renameat2. Return False if the system does not support this. Raises OSError.

    `source` and `target` are pairs of a name and the descriptor of its folder.
    """
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
