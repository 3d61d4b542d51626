"""Waiting for what other threads and processes are about to do."""

import gc
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException

LONGEST_S = 30.0
YARD_S = 0.01


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


def _yardstick() -> float:
    """How many seconds this thread computes for a fixed piece of work: 0.01 on a quiet machine of 2024."""
    began = time.thread_time()
    words = [f"word-{number}" for number in range(20_000)]
    places = {word: place for place, word in enumerate(words)}
    sum(places[word] for word in words)
    ",".join(sorted(words)).split(",")
    return time.thread_time() - began


@contextmanager
def computing_less_than(seconds: float) -> Iterator[None]:
    """A block in which this thread computes less than some seconds of a machine whose yardstick is 0.01 s.

    A slow or a busy machine has as many seconds more, and what other tests left to collect does not count.
    """
    gc.disable()
    try:
        yards = [_yardstick() for _ in range(3)]
        began = time.thread_time()
        yield
        taken = time.thread_time() - began
        yards += [_yardstick() for _ in range(3)]
    finally:
        gc.enable()
    taken *= YARD_S / max(YARD_S, *yards)
    assert taken < seconds, f"took {taken:.2f} s of a quiet processor's time"
