"""How many event streams each worker of a server has open, in memory that all of them share."""

import mmap
import os
from contextlib import suppress

PLACES = 256  # of workers, by their numbers; one that has ended leaves its place to a later one


class StreamCounts:
    """The counts of all workers. Made before the workers are forked; each then enters with its number."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PLACES * 2 * 8)
        self._numbers = memoryview(self._memory).cast("Q")  # by worker: its process, and its count
        self._place = 0

    def enter(self, worker: int) -> None:
        """Count the streams of this process from now on, as those of the worker with a number."""
        self._place = worker % PLACES * 2
        self._numbers[self._place + 1] = 0
        self._numbers[self._place] = os.getpid()

    def set(self, count: int) -> None:
        """Say how many streams this process has."""
        self._numbers[self._place + 1] = count

    def total(self) -> int:
        """How many streams the processes have that are alive."""
        counts = self._numbers.tolist()
        taken = zip(counts[::2], counts[1::2], strict=True)
        return sum(count for process, count in taken if count and _is_alive(process))


def _is_alive(process: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False
