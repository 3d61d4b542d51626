"""Stops taking connections from a socket that other processes go on to take them from.

granian, told to stop, closes each connection on which nothing has arrived yet, even one that it has taken
an instant before. So its event loop no longer hears of new ones, some time before it is told to stop.
"""

import os
import select
import socket
from contextlib import suppress

_OPEN_FILES = "/proc/self/fd"


def stop_accepting(listener: socket.socket) -> None:
    """Let no event loop of this process wait for connections on a socket; other processes' do as before.

    It does so on Linux, where the event loops of a process can be found among its open files.
    """
    if not hasattr(select, "epoll"):
        return
    loops, copies = [], []
    for descriptor in map(int, os.listdir(_OPEN_FILES)):
        with suppress(OSError):  # Another thread has closed it meanwhile.
            if os.readlink(f"{_OPEN_FILES}/{descriptor}") == "anon_inode:[eventpoll]":
                loops.append(os.dup(descriptor))
            elif os.path.sameopenfile(descriptor, listener.fileno()):
                copies.append(descriptor)
    for loop in loops:
        with select.epoll.fromfd(loop) as events:
            for copy in copies:
                with suppress(FileNotFoundError):  # It is another event loop that waits for this one.
                    events.unregister(copy)
