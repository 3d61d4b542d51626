"""Takeover of a running server's port by a new server for the same site.

The old server sends its socket through a Unix socket in `.bifolio/`.
"""

import errno
import os
import re
import select
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from server.errors import SetupError
from server.paths import state_folder

HANDOVER_TIMEOUT_S = 5.0  # Maximum wait for the running server's socket.
READY_TIMEOUT_S = 300.0  # If the new server is not ready after this time, another one can take over.
BACKLOG_CONNECTIONS = 8  # Limit for connections that have not sent anything yet.
_ASK, _READY = b"a", b"r"
_NAME = re.compile(r"serve-[0-9]{1,5}\.sock")  # the Unix sockets in .bifolio/
# _HANDED is sent with the listening socket, _BUSY if another takeover is already running.
_HANDED, _BUSY = b".", b"b"
_CREDENTIALS = struct.Struct("3i")


class TakenOverSocket:
    """The listening socket of a running server. That server keeps running until `answer` is called."""

    def __init__(self, listener: socket.socket, other: socket.socket) -> None:
        self.listener, self._other = listener, other

    def answer(self) -> None:
        with suppress(OSError):  # The running server may have ended.
            self._other.send(_READY)

    def is_running(self) -> bool:
        poll = select.poll()
        poll.register(self._other, 0)
        return not poll.poll(0)

    def close(self) -> None:
        self.listener.close()
        self._other.close()


def take_over(root: Path, port: int) -> TakenOverSocket | None:
    """Return the running server's listening socket, or None if no server is running.

    Raises SetupError if the running server does not hand over its socket.
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
    return TakenOverSocket(listener, other)


class TakeoverListener:
    """Unix socket through which a server hands over its listening socket."""

    def __init__(self, root: Path, port: int, listener: socket.socket) -> None:
        self._root, self._port, self._listener = root, port, listener
        self._socket: socket.socket | None = None
        self._new_connections: list[socket.socket] = []  # connections that have not sent anything yet
        # connection to the new server, which has received the listening socket
        self._new_server: socket.socket | None = None
        self._successor: socket.socket | None = None  # to the new server; closed when this server exits
        self._since = 0.0  # when `_new_server` received the socket
        # inode number and timestamp of the Unix socket
        self._socket_mark: tuple[int, int] | None = None

    def open(self) -> None:
        """Begin to accept takeover requests. The previous server then receives no more of them."""
        if not hasattr(socket, "SO_PEERCRED"):
            return
        socket_ = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        socket_.setblocking(False)
        delete_stale_sockets(self._root)
        try:
            with _short_path(self._root, self._port) as path:
                begun = f"{path}.new"  # Renamed when the socket is listening.
                Path(begun).unlink(missing_ok=True)
                socket_.bind(begun)
                os.chmod(begun, 0o600)
                socket_.listen(BACKLOG_CONNECTIONS)
                self._socket_mark = _mark_of(begun)
                os.rename(begun, path)
        except OSError:  # The server can run without this socket.
            socket_.close()
            return
        self._socket = socket_

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the file descriptors to watch. Call `handle_requests` when one is readable."""
        return tuple(one.fileno() for one in self._connections())

    def handle_requests(self) -> bool:
        """Handle the takeover requests that have arrived. Return True if another server has taken over."""
        if self._new_server is not None:
            with suppress(BlockingIOError):
                if _receive(self._new_server) == _READY:
                    return True
                self._drop_new_server()  # The new server exited before it was ready.
        if self._socket is not None:
            with suppress(OSError):
                self._new_connections.append(self._socket.accept()[0])
                self._new_connections[-1].setblocking(False)
        for other in list(self._new_connections):
            with suppress(BlockingIOError):
                asks = _receive(other) == _ASK
                self._new_connections.remove(other)
                if not asks or not self._hand_over(other):
                    other.close()
        while len(self._new_connections) > BACKLOG_CONNECTIONS:
            self._new_connections.pop(0).close()
        return False

    def end(self) -> None:
        self._successor, self._new_server = self._new_server, None
        self.close()

    def close(self) -> None:
        """Close the socket in this process. In other processes, it stays open."""
        for one in self._connections():
            one.close()
        self._socket, self._new_server, self._new_connections = None, None, []

    def remove(self) -> None:
        """Delete the Unix socket. If another server has replaced it, do nothing."""
        with suppress(OSError), _short_path(self._root, self._port) as path:
            if self._socket_mark and _mark_of(path) == self._socket_mark:
                os.unlink(path)

    def _connections(self) -> list[socket.socket]:
        return [*(one for one in (self._socket, self._new_server) if one is not None), *self._new_connections]

    def _drop_new_server(self) -> None:
        if self._new_server is not None:
            self._new_server.close()
        self._new_server = None

    def _hand_over(self, other: socket.socket) -> bool:
        size = _CREDENTIALS.size
        _, user, _ = _CREDENTIALS.unpack(other.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
        if user not in (0, os.getuid()):
            return False
        now = time.monotonic()
        try:
            if self._new_server is not None and now - self._since < READY_TIMEOUT_S:
                other.send(_BUSY)  # Otherwise, two servers could take over and both keep running.
                return False
            socket.send_fds(other, [_HANDED], [self._listener.fileno()])
        except OSError:
            return False
        self._drop_new_server()
        self._new_server, self._since = other, now
        return True


def _mark_of(path: str) -> tuple[int, int]:
    # The inode number alone is not enough, because file systems reuse inode numbers.
    status = os.lstat(path)
    return status.st_ino, status.st_mtime_ns


def delete_stale_sockets(root: Path) -> None:
    """Delete Unix sockets of servers that were killed."""
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
    """Return a message from the other server, or b"" if that server has ended.

    Raises BlockingIOError if no message has arrived.
    """
    try:
        return other.recv(1)
    except ConnectionError:
        return b""


@contextmanager
def _short_path(root: Path, port: int) -> Iterator[str]:
    # Paths to Unix sockets are limited to 107 bytes, so the folder is given by its file descriptor.
    folder = os.open(state_folder(root), os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{folder}/serve-{port}.sock"
    finally:
        os.close(folder)
