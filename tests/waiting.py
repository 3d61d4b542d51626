"""Waiting for what other threads and processes are about to do."""

import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException

LONGEST_S = 30.0


def until(met: Callable[[], bool], seconds: float = LONGEST_S) -> None:
    """Wait until something is so; a server that can't be reached meanwhile may be about to start."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if met():
                return
        except (OSError, HTTPException):
            if time.monotonic() > deadline:
                raise
        assert time.monotonic() < deadline, f"not so after {seconds:.0f} s"
        time.sleep(0.01)


def are_heard(sockets: Iterable[socket.socket]) -> bool:
    """Whether anything has arrived on some sockets, or they were closed; `select` knows 1,024 files only."""
    poll = select.poll()
    for one in sockets:
        poll.register(one, select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def computing_less_than(seconds: float) -> Iterator[None]:
    """A block in which this thread takes less processor time than some seconds."""
    began = time.thread_time()
    yield
    taken = time.thread_time() - began
    assert taken < seconds, f"took {taken:.1f} s of processor time"
