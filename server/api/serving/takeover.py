"""Lets another server of the same site take over the port of this one, so that no request is refused.

The first process of a server offers the socket that it listens on, at a socket in `.bifolio/` that only who
runs it may use. A server that is to take its place asks for that, loads the site, and says so when it
answers: then this one lets its clients go, as a generation that is replaced does. Until then it goes on,
whatever becomes of the other one. Both accept from one queue, which is why no connection is lost in it.
Who connects and asks for nothing is in nobody's way.
"""

import errno
import os
import re
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server.errors import SetupError
from server.paths import state_folder

HANDOVER_TIMEOUT_S = 5.0  # How long the running server may take to hand its socket over.
READY_TIMEOUT_S = 300.0  # How long a successor may take to serve if another one asks as well.
BACKLOG_CONNECTIONS = 8  # Connections that have not asked for anything yet.
_ASK, _READY = b"a", b"r"
_NAME = re.compile(r"serve-[0-9]{1,5}\.sock")  # the sockets of servers, in .bifolio/
_HANDED, _BUSY = b".", b"b"  # with the socket; without it, since another server has it already
_CREDENTIALS = struct.Struct("3i")


class Taken:
    """The socket of another server, which goes on until `answer` is called."""

    def __init__(self, listener: socket.socket, other: socket.socket) -> None:
        self.listener, self._other = listener, other

    def answer(self) -> None:
        """Tell the other server that this one answers now."""
        with suppress(OSError):  # It has ended by itself.
            self._other.send(_READY)

    def close(self) -> None:
        """Leave everything to the other server."""
        self.listener.close()
        self._other.close()


def take_over(root: Path, port: int) -> Taken | None:
    """The socket of the server of the site at `root` that listens on a port; None where there is none.

    Raises SetupError where there is one that does not hand it over.
    """
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    other.settimeout(HANDOVER_TIMEOUT_S)
    try:
        with _short_path(root, port) as path:
            other.connect(path)
        other.send(_ASK)
    except (FileNotFoundError, ConnectionRefusedError):
        other.close()
        return None
    except OSError as error:
        raise SetupError(
            f":{port}", None, f"can't be taken over: {error.strerror}", "stop the server"
        ) from error
    try:
        said, descriptors, _, _ = socket.recv_fds(other, 1, 1)
    except OSError as error:
        raise SetupError(f":{port}", None, "is not handed over in time", "stop the server") from error
    if not descriptors:
        other.close()
        if said == _BUSY:
            raise SetupError(
                f":{port}", None, "is being taken over by another server", "wait until that one answers"
            )
        return None
    other.settimeout(None)
    listener = socket.socket(fileno=descriptors[0])
    listener.setblocking(False)
    return Taken(listener, other)


class Offer:
    """What offers the socket of a server that listens on a port; for the process that all come from."""

    def __init__(self, root: Path, port: int, listener: socket.socket) -> None:
        self._root, self._port, self._listener = root, port, listener
        self._asked: socket.socket | None = None
        self._silent: list[socket.socket] = []  # who has connected, and asked for nothing yet
        self._taker: socket.socket | None = None  # who has the socket
        self._since = 0.0  # when it got that
        self._made: tuple[int, int] | None = None  # the mark of the file that `open` made

    def open(self) -> None:
        """Offer it from now on, in the place of the server that had it before, if there is one."""
        if not hasattr(socket, "SO_PEERCRED"):
            return
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asked.setblocking(False)
        sweep_sockets(self._root)
        try:
            with _short_path(self._root, self._port) as path:
                begun = f"{path}.new"  # Whoever finds the file under its name finds it listening.
                Path(begun).unlink(missing_ok=True)
                asked.bind(begun)
                os.chmod(begun, 0o600)
                asked.listen(BACKLOG_CONNECTIONS)
                self._made = _mark_of(begun)
                os.rename(begun, path)
        except OSError:  # Then nobody takes over, which nothing else depends on.
            asked.close()
            return
        self._asked = asked

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What there is to hear from."""
        return tuple(one.fileno() for one in self._connections())

    def hear(self) -> bool:
        """Hand the socket to who asks for it; whether another server answers now in the place of this one."""
        if self._taker is not None:
            with suppress(BlockingIOError):
                if _receive(self._taker) == _READY:
                    return True
                self._let_go()  # It has ended before it answered.
        if self._asked is not None:
            with suppress(OSError):
                self._silent.append(self._asked.accept()[0])
                self._silent[-1].setblocking(False)
        for other in list(self._silent):
            with suppress(BlockingIOError):
                asks = _receive(other) == _ASK
                self._silent.remove(other)
                if not asks or not self._hand_over(other):
                    other.close()
        while len(self._silent) > BACKLOG_CONNECTIONS:
            self._silent.pop(0).close()
        return False

    def close(self) -> None:
        """Offer it no more; what a process closes that was forked, the first one still has."""
        for one in self._connections():
            one.close()
        self._asked, self._taker, self._silent = None, None, []

    def remove(self) -> None:
        """Remove the file of the socket, unless another server has replaced it; for the first process."""
        with suppress(OSError), _short_path(self._root, self._port) as path:
            if self._made and _mark_of(path) == self._made:
                os.unlink(path)

    def _connections(self) -> list[socket.socket]:
        return [*(one for one in (self._asked, self._taker) if one is not None), *self._silent]

    def _let_go(self) -> None:
        if self._taker is not None:
            self._taker.close()
        self._taker = None

    def _hand_over(self, other: socket.socket) -> bool:
        """Send the socket to another server; whether it has got it."""
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user not in (0, os.getuid()):
            return False
        now = time.monotonic()
        try:
            if self._taker is not None and now - self._since < READY_TIMEOUT_S:
                other.send(_BUSY)  # Two that take over at once would both go on.
                return False
            socket.send_fds(other, [_HANDED], [self._listener.fileno()])
        except OSError:
            return False
        self._let_go()
        self._taker, self._since = other, now
        return True


def _mark_of(path: str) -> tuple[int, int]:
    """Return what tells a file from others at its path; a file system may give the inode to the next one."""
    status = os.lstat(path)
    return status.st_ino, status.st_mtime_ns


def sweep_sockets(root: Path) -> None:
    """Remove the sockets on which no server listens any more, such as those of servers that were killed."""
    with suppress(OSError):
        folder = os.open(state_folder(root), os.O_RDONLY | os.O_DIRECTORY)
        try:
            for name in filter(_NAME.fullmatch, os.listdir(folder)):
                path = f"/proc/self/fd/{folder}/{name}"
                with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                    probe.setblocking(False)
                    if probe.connect_ex(path) == errno.ECONNREFUSED:
                        os.unlink(path)
        finally:
            os.close(folder)


def _receive(other: socket.socket) -> bytes:
    """What another server says; b"" where it has ended. Raises BlockingIOError where it says nothing yet."""
    try:
        return other.recv(1)
    except ConnectionError:
        return b""


@contextmanager
def _short_path(root: Path, port: int) -> Iterator[str]:
    """The path of the socket, by a descriptor of its folder: a path of a socket has 107 bytes at most."""
    folder = os.open(state_folder(root), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/serve-{port}.sock"
    finally:
        os.close(folder)
