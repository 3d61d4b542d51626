"""Takeover of a running server's port by another server for the same site. No request is rejected during a
takeover.

The first process of a server offers its listening socket through a Unix socket in `.bifolio/`. Only the user
who runs the server can access this Unix socket. A takeover has these steps:

- The new server requests the listening socket, and loads the site.
- When the new server can handle requests, it notifies the old server. The old server then retires its
  workers.
- Until these workers have retired, both servers accept connections from the same queue, so no connection is
  lost.

If the new server fails to start, the old server continues. A client that connects to the Unix socket but
sends nothing does not block other clients.
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

HANDOVER_TIMEOUT_S = 5.0  # Maximum time to wait until the running server hands over its socket.
READY_TIMEOUT_S = 300.0  # If a new server takes longer than this to start, a different server may take over.
BACKLOG_CONNECTIONS = 8  # Maximum number of connections to the Unix socket that have not sent anything yet.
_ASK, _READY = b"a", b"r"
_NAME = re.compile(r"serve-[0-9]{1,5}\.sock")  # matches the names of the Unix sockets in .bifolio/
# The running server sends the first together with the socket, or the second if a takeover is already running.
_HANDED, _BUSY = b".", b"b"
_CREDENTIALS = struct.Struct("3i")


class Taken:
    """A listening socket that this server has received from a running server. The running server continues
    until this server calls `answer`.
    """

    def __init__(self, listener: socket.socket, other: socket.socket) -> None:
        self.listener, self._other = listener, other

    def answer(self) -> None:
        """Notify the running server that this server can now handle requests."""
        with suppress(OSError):  # This fails if the running server has ended.
            self._other.send(_READY)

    def close(self) -> None:
        """Cancel the takeover. The running server continues."""
        self.listener.close()
        self._other.close()


def take_over(root: Path, port: int) -> Taken | None:
    """Request the listening socket from the server that is running for the site at `root`, and return it.
    Returns None if no server is running.

    Raises SetupError if the running server does not hand over its listening socket.
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
    """A server's offer to hand over its listening socket to a new server. The object is used in the server's
    first process.
    """

    def __init__(self, root: Path, port: int, listener: socket.socket) -> None:
        self._root, self._port, self._listener = root, port, listener
        self._asked: socket.socket | None = None
        self._silent: list[socket.socket] = []  # connections that have not sent anything yet
        # the connection to the server that has received the listening socket
        self._taker: socket.socket | None = None
        self._since = 0.0  # when that server received the listening socket
        # the inode number and timestamp of the file that `open` has created
        self._made: tuple[int, int] | None = None

    def open(self) -> None:
        """Start the offer. If the server from which this server has taken over still has an offer, replace
        it.
        """
        if not hasattr(socket, "SO_PEERCRED"):
            return
        asked = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        asked.setblocking(False)
        sweep_sockets(self._root)
        try:
            with _short_path(self._root, self._port) as path:
                begun = f"{path}.new"  # The file is renamed when the socket is listening.
                Path(begun).unlink(missing_ok=True)
                asked.bind(begun)
                os.chmod(begun, 0o600)
                asked.listen(BACKLOG_CONNECTIONS)
                self._made = _mark_of(begun)
                os.rename(begun, path)
        except OSError:  # The server works without an offer, but its port can't be taken over.
            asked.close()
            return
        self._asked = asked

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return file descriptors. When one of them becomes readable, `hear` must be called."""
        return tuple(one.fileno() for one in self._connections())

    def hear(self) -> bool:
        """Handle requests for the listening socket. Returns True when a new server has taken over."""
        if self._taker is not None:
            with suppress(BlockingIOError):
                if _receive(self._taker) == _READY:
                    return True
                self._let_go()  # The new server has ended before it was ready.
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
        """Close this process's copy of the offer. In a process that was forked from the first process, this
        does not affect the offer of the first process.
        """
        for one in self._connections():
            one.close()
        self._asked, self._taker, self._silent = None, None, []

    def remove(self) -> None:
        """Delete the file of the Unix socket, unless another server has already replaced it. This method is
        called in the first process.
        """
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
        """Send the listening socket to another server. Return False if this was not possible."""
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user not in (0, os.getuid()):
            return False
        now = time.monotonic()
        try:
            if self._taker is not None and now - self._since < READY_TIMEOUT_S:
                other.send(_BUSY)  # Otherwise, two servers could take over and both keep running.
                return False
            socket.send_fds(other, [_HANDED], [self._listener.fileno()])
        except OSError:
            return False
        self._let_go()
        self._taker, self._since = other, now
        return True


def _mark_of(path: str) -> tuple[int, int]:
    """Return a file's inode number and timestamp, which together identify the file. The inode number is not
    sufficient, because file systems may reuse inode numbers.
    """
    status = os.lstat(path)
    return status.st_ino, status.st_mtime_ns


def sweep_sockets(root: Path) -> None:
    """Delete Unix sockets on which no server is listening, for example because the server was killed."""
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
    """Return a message from another server. Returns b"" if that server has ended.

    Raises BlockingIOError if no message has arrived yet.
    """
    try:
        return other.recv(1)
    except ConnectionError:
        return b""


@contextmanager
def _short_path(root: Path, port: int) -> Iterator[str]:
    """Context manager: yield a short path to the Unix socket. The path refers to the socket's folder by a
    file descriptor.

    This is necessary because paths to Unix sockets are limited to 107 bytes, so the full path may be too
    long.
    """
    folder = os.open(state_folder(root), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/serve-{port}.sock"
    finally:
        os.close(folder)
