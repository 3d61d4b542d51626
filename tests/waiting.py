"""Helpers that wait for other threads and processes."""

import gc
import select
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path

LONGEST_S = 30.0
YARD_S = 0.01


def until(met: Callable[[], bool], seconds: float = LONGEST_S) -> None:
    """Wait until a condition is met. Ignore connection errors, because the server may still be starting."""
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


def delete_folder(folder: Path) -> None:
    """Delete a folder in which other processes may create files meanwhile."""

    def is_deleted() -> bool:
        if folder.exists():
            shutil.rmtree(folder)  # raises OSError if a new file is in it
        return True

    until(is_deleted)


def are_heard(sockets: Iterable[socket.socket]) -> bool:
    """Return whether data has arrived on any of the sockets, or any was closed.

    This uses `poll`, because `select` supports only 1,024 files.
    """
    poll = select.poll()
    for one in sockets:
        poll.register(one, select.POLLIN)
    return bool(poll.poll(0))


def _yardstick() -> float:
    """Return how many seconds of processor time a fixed computation takes: 0.01 on an idle
    machine from 2024.
    """
    began = time.thread_time()
    words = [f"word-{number}" for number in range(20_000)]
    places = {word: place for place, word in enumerate(words)}
    sum(places[word] for word in words)
    ",".join(sorted(words)).split(",")
    return time.thread_time() - began


@contextmanager
def computing_less_than(seconds: float) -> Iterator[None]:
    """Context manager: require that this thread needs less processor time than given.

    The limit applies to a machine whose `_yardstick` is 0.01 s, and grows on slower or busier machines.
    Garbage from other tests is not collected in the block.
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
