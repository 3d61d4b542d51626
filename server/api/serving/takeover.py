"""Takeover of a running server's port by another server for the same site, without rejecting requests.

The first process of a server offers its listening socket through a Unix socket in `.bifolio/`, which only the
server's user can access. A takeover has these steps:

- The new server requests the listening socket, and loads the site.
- When it can handle requests, it notifies the old server, which then retires like a replaced generation.
- Both accept connections from the same queue, so no connection is lost.

If the new server fails to start, the old one continues. Clients of the Unix socket that send nothing don't
block others.
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

HANDOVER_TIMEOUT_S = 5.0  # How long to wait for the running server to hand over its socket.
READY_TIMEOUT_S = 300.0  # How long a new server may take to start before another one may take over.
BACKLOG_CONNECTIONS = 8  # Maximum number of connections that have sent nothing yet.
_ASK, _READY = b"a", b"r"
_NAME = re.compile(r"serve-[0-9]{1,5}\.sock")  # names of Unix sockets in .bifolio/
_HANDED, _BUSY = b".", b"b"  # sent together with the socket; sent if another server is already taking over
_CREDENTIALS = struct.Struct("3i")


class Taken:
    """A listening socket received from another server. That server continues until `answer` is called."""

    def __init__(self, listener: socket.socket, other: socket.socket) -> None:
        self.listener, self._other = listener, other

    def answer(self) -> None:
        """Notify the other server that this one is handling requests now."""
        with suppress(OSError):  # The other server may have ended.
            self._other.send(_READY)

    def close(self) -> None:
        """Cancel the takeover. The other server continues."""
        self.listener.close()
        self._other.close()


def take_over(root: Path, port: int) -> Taken | None:
    """Return the listening socket of a running server for the site at `root`, or None if there is none.

    Raises SetupError if that server does not hand over its socket.
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
                f":{port}",
                None,
                "is already being taken over by another server",
                "wait until that server is ready",
            )
        return None
    other.settimeout(None)
    listener = socket.socket(fileno=descriptors[0])
    listener.setblocking(False)
    return Taken(listener, other)


class Offer:
    """A server's offer of its listening socket to a new server. Used in the first process."""

    def __init__(self, root: Path, port: int, listener: socket.socket) -> None:
        self._root, self._port, self._listener = root, port, listener
        self._asked: socket.socket | None = None
        self._silent: list[socket.socket] = []  # connections that have sent nothing yet
        self._taker: socket.socket | None = None  # connection to the server that received the socket
        self._since = 0.0  # when it received the socket
        self._made: tuple[int, int] | None = None  # identity of the file that `open` created

    def open(self) -> None:
        """Start the offer. It replaces the previous server's offer."""
        if not hasattr(socket, "SO_PEERCRED"):
            return
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asked.setblocking(False)
        sweep_sockets(self._root)
        try:
            with _short_path(self._root, self._port) as path:
                begun = f"{path}.new"  # Renamed when it is listening.
                Path(begun).unlink(missing_ok=True)
                asked.bind(begun)
                os.chmod(begun, 0o600)
                asked.listen(BACKLOG_CONNECTIONS)
                self._made = _mark_of(begun)
                os.rename(begun, path)
        except OSError:  # Without the offer, the server works, but can't be taken over.
            asked.close()
            return
        self._asked = asked

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The file descriptors to wait for."""
        return tuple(one.fileno() for one in self._connections())

    def hear(self) -> bool:
        """Handle requests for the socket. Returns True when a new server has taken over."""
        if self._taker is not None:
            with suppress(BlockingIOError):
                if _receive(self._taker) == _READY:
                    return True
                self._let_go()  # The new server ended before it was ready.
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
        """Close the offer in this process. After a fork, the first process continues to offer."""
        for one in self._connections():
            one.close()
        self._asked, self._taker, self._silent = None, None, []

    def remove(self) -> None:
        """Remove the Unix socket's file, unless another server has replaced it. Used in the first process."""
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
        """Send the listening socket to another server. Returns whether that succeeded."""
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user not in (0, os.getuid()):
            return False
        now = time.monotonic()
        try:
            if self._taker is not None and now - self._since < READY_TIMEOUT_S:
                other.send(_BUSY)  # Two concurrent takeovers would result in two servers.
                return False
            socket.send_fds(other, [_HANDED], [self._listener.fileno()])
        except OSError:
            return False
        self._let_go()
        self._taker, self._since = other, now
        return True


def _mark_of(path: str) -> tuple[int, int]:
    """Return a file's identity: inode and time, because file systems may reuse inodes."""
    status = os.lstat(path)
    return status.st_ino, status.st_mtime_ns


def sweep_sockets(root: Path) -> None:
    """Remove Unix sockets without a listening server, such as those left by killed servers."""
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
    """Return a message from another server, or b"" if it has ended.

    Raises BlockingIOError if there is none.
    """
    try:
        return other.recv(1)
    except ConnectionError:
        return b""


@contextmanager
def _short_path(root: Path, port: int) -> Iterator[str]:
    """Context manager: a short path for the Unix socket, through a descriptor of its folder.

    It is needed because such paths are limited to 107 bytes.
    """
    folder = os.open(state_folder(root), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/serve-{port}.sock"
    finally:
        os.close(folder)
