"""Puts a file in the place of another so that what was there is still at hand, and can be compared.

Between the last look at a file and its replacement somebody may save it. So the new file and the old one
exchange their names in one step, and the old one is looked at afterwards. Where the system can't do
that, the new file is renamed over the old one, of which a second name was made just before.
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
    """Let the file `aside` and the target, which is in an opened folder, change places, in one step.

    False where the system can't: then `aside` is a second name, or a copy, that the target had just
    before it was replaced. Raises OSError.
    """
    # The target comes first: who watches its folder is told that it went, and then that it came.
    if _rename((target.name, folder), (str(aside), _AT_FDCWD), _EXCHANGE):
        return True
    former = aside.with_suffix(".former")
    former.unlink(missing_ok=True)  # of a writer that was killed here
    back_up(target, former)
    move(aside, target.name, folder)
    os.replace(former, aside)
    return False


def put_new(aside: Path, target: Path, folder: int) -> None:
    """Rename a file to a target in an opened folder. Raises OSError, FileExistsError where there is one."""
    if _rename((str(aside), _AT_FDCWD), (target.name, folder), _NOREPLACE):
        return
    try:
        os.link(aside, target.name, dst_dir_fd=folder)
        os.unlink(aside)
    except FileExistsError:
        raise
    except OSError:  # There are no second names here.
        move(aside, target.name, folder)


def take_away(target: Path, folder: int, aside: Path) -> bool:
    """Rename a target in an opened folder to `aside`; False where that is another file system, and a copy."""
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
    """A file, open for reading, of which it can be told whether somebody may be changing it in place.

    On Linux it can be held: whoever opens it for writing waits then, until it is released or closed.
    """

    def __init__(self, file: BufferedReader) -> None:
        self.file = file
        self._held = False

    @property
    def mark(self) -> FileMark:
        """Its mark now."""
        return file_mark(os.fstat(self.file.fileno()))

    def read(self) -> bytes:
        """All of its bytes."""
        self.file.seek(0)
        return self.file.read()

    def says(self, data: bytes | None) -> bool:
        """Whether it has some bytes; True for None, where they are not known."""
        return data is None or self.read() == data

    def hold(self, wait_s: float = WRITER_TIMEOUT_S) -> bool:
        """Hold it, if the system can; False if a program has it open for writing for longer than `wait_s`."""
        deadline = time.monotonic() + wait_s
        while (refused := self._lease()) == errno.EAGAIN:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_INTERVAL_S)
        self._held = not refused
        return True

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits for it to be released, or could have opened it because it took too long."""
        return self._held and fcntl.fcntl(self.file.fileno(), fcntl.F_GETLEASE) != fcntl.F_RDLCK

    def release(self) -> None:
        """Let others open it for writing again."""
        if self._held:
            self._held = False
            with suppress(OSError):
                fcntl.fcntl(self.file.fileno(), fcntl.F_SETLEASE, fcntl.F_UNLCK)

    def _lease(self) -> int:
        """Ask the kernel for a lease, which there is only where nobody has the file open for writing.

        Returns the number of the error, 0 for none. Who opens the file then waits, and this process gets a
        signal, for which one is chosen that does nothing.
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
    """A file, open as long as `held` is; None for a link, and for what may not be read or is no file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    file = held.enter_context(os.fdopen(descriptor, "rb"))
    return Reader(file) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def is_unchanged(path: Path, before: FileMark, data: bytes | None) -> bool:
    """Whether a file, or link itself, has a mark and bytes, and no program is about to change it.

    The bytes are compared, unless they are None: a program can save as many within one tick of the clock.
    """
    with ExitStack() as held:
        reader = open_reader(path, held)
        if reader is None:
            return link_mark(path) == before
        is_same = reader.hold() and reader.mark == before and reader.says(data)
        return is_same and not reader.is_awaited


def _rename(source: tuple[str, int], target: tuple[str, int], flags: int) -> bool:
    """Whether a name in a folder was renamed with the flags of renameat2; False where that is not known.

    Raises OSError.
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


# The C library has it on Linux.
_renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
