"""Takeover of the port of a running server by another server of the same site, without refused requests.

The first process of a server offers its listening socket through a Unix socket in `.bifolio/`, which only the
server's user may use. The new server requests the listening socket, loads the site, and reports when it
answers requests. Then the old server retires, as a replaced generation does. Until then it keeps serving,
even if the new server fails. Both accept from one queue, so no connection is lost. A connection that requests
nothing does not block others.
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
READY_TIMEOUT_S = 300.0  # How long a new server may block others from taking over.
BACKLOG_CONNECTIONS = 8  # Connections without a request so far.
_ASK, _READY = b"a", b"r"
_NAME = re.compile(r"serve-[0-9]{1,5}\.sock")  # Unix sockets in .bifolio/
_HANDED, _BUSY = b".", b"b"  # sent with the socket; sent if another server has it already
_CREDENTIALS = struct.Struct("3i")


class Taken:
    """The listening socket of another server, which keeps serving until `answer` is called."""

    def __init__(self, listener: socket.socket, other: socket.socket) -> None:
        self.listener, self._other = listener, other

    def answer(self) -> None:
        """Notify the other server that this one answers requests now."""
        with suppress(OSError):  # It has ended already.
            self._other.send(_READY)

    def close(self) -> None:
        """Give up the takeover; the other server keeps serving."""
        self.listener.close()
        self._other.close()


def take_over(root: Path, port: int) -> Taken | None:
    """Return the socket of the server of the site at `root` that listens on a port, None if there is none.

    Raises SetupError if that server does not hand it over.
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
        raise SetupError(f":{port}", None, "was not handed over in time", "stop the server") from error
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
    """Offer of a server's listening socket to a new server; for the first process."""

    def __init__(self, root: Path, port: int, listener: socket.socket) -> None:
        self._root, self._port, self._listener = root, port, listener
        self._asked: socket.socket | None = None
        self._silent: list[socket.socket] = []  # connections without a request so far
        self._taker: socket.socket | None = None  # the connection of the server that got the socket
        self._since = 0.0  # and when
        self._made: tuple[int, int] | None = None  # the identity of the file that `open` created

    def open(self) -> None:
        """Start the offer, replacing that of the previous server, if any."""
        if not hasattr(socket, "SO_PEERCRED"):
            return
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asked.setblocking(False)
        sweep_sockets(self._root)
        try:
            with _short_path(self._root, self._port) as path:
                begun = f"{path}.new"  # Renamed once it listens.
                Path(begun).unlink(missing_ok=True)
                asked.bind(begun)
                os.chmod(begun, 0o600)
                asked.listen(BACKLOG_CONNECTIONS)
                self._made = _mark_of(begun)
                os.rename(begun, path)
        except OSError:  # Only takeovers are impossible then.
            asked.close()
            return
        self._asked = asked

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors to wait on for input."""
        return tuple(one.fileno() for one in self._connections())

    def hear(self) -> bool:
        """Handle requests for the socket; return whether a new server has replaced this one."""
        if self._taker is not None:
            with suppress(BlockingIOError):
                if _receive(self._taker) == _READY:
                    return True
                self._let_go()  # It ended before it was ready.
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
        """Close the offer in this process; in a forked process, the first one keeps it."""
        for one in self._connections():
            one.close()
        self._asked, self._taker, self._silent = None, None, []

    def remove(self) -> None:
        """Remove the socket file, unless another server has replaced it; for the first process."""
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
        """Send the socket to another server; return whether that succeeded."""
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user not in (0, os.getuid()):
            return False
        now = time.monotonic()
        try:
            if self._taker is not None and now - self._since < READY_TIMEOUT_S:
                other.send(_BUSY)  # Two takeovers at once would leave two servers.
                return False
            socket.send_fds(other, [_HANDED], [self._listener.fileno()])
        except OSError:
            return False
        self._let_go()
        self._taker, self._since = other, now
        return True


def _mark_of(path: str) -> tuple[int, int]:
    """Return the identity of a file. The time is part of it, since a file system may reuse the inode."""
    status = os.lstat(path)
    return status.st_ino, status.st_mtime_ns


def sweep_sockets(root: Path) -> None:
    """Remove sockets without a listening server, such as those of killed servers."""
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
    """Return another server's message, b"" if it has ended. Raises BlockingIOError if there is none yet."""
    try:
        return other.recv(1)
    except ConnectionError:
        return b""


@contextmanager
def _short_path(root: Path, port: int) -> Iterator[str]:
    """Context manager: yield a short path of the socket, through a descriptor of its folder.

    The path of a Unix socket has at most 107 bytes.
    """
    folder = os.open(state_folder(root), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/serve-{port}.sock"
    finally:
        os.close(folder)
