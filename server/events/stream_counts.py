"""How many event streams each worker of a server has open, in memory that all of them share.

Those of one client are counted by a hash of who it is, with a key that nobody outside can know: two clients
that have the same count as one.
"""

import mmap
import os
import secrets
from contextlib import suppress
from hashlib import blake2b

PLACES = 256  # of workers, by their numbers; one that has ended leaves its place to a later one
HASHES = 1024  # of clients


class StreamCounts:
    """The counts of all workers. Made before the workers are forked; each then enters with its number."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, PLACES * 2 * 8)
        self._numbers = memoryview(self._memory).cast("Q")  # by worker: its process, and its count
        self._of_clients = memoryview(mmap.mmap(-1, PLACES * HASHES * 2)).cast("H")
        self._key = secrets.token_bytes(16)
        self._place = 0

    def enter(self, worker: int) -> None:
        """Count the streams of this process from now on, as those of the worker with a number."""
        self._place = worker % PLACES * 2
        self._numbers[self._place + 1] = 0
        begin = self._place // 2 * HASHES
        self._of_clients[begin : begin + HASHES] = memoryview(bytes(HASHES * 2)).cast("H")
        self._numbers[self._place] = os.getpid()

    def set(self, count: int) -> None:
        """Say how many streams this process has."""
        self._numbers[self._place + 1] = count

    def add(self, client: str, more: int) -> None:
        """Say that a client has so many more streams in this process."""
        self._of_clients[self._place // 2 * HASHES + self._hash(client)] += more

    def total(self) -> int:
        """How many streams the processes have that are alive."""
        return sum(count for _, count in self._living())

    def of_client(self, client: str) -> int:
        """How many of these are of a client."""
        found = self._hash(client)
        return sum(self._of_clients[place * HASHES + found] for place, _ in self._living())

    def _living(self) -> list[tuple[int, int]]:
        """The places of processes that are alive and have streams, and how many."""
        counts = self._numbers.tolist()
        taken = enumerate(zip(counts[::2], counts[1::2], strict=True))
        return [(place, count) for place, (process, count) in taken if count and is_alive(process)]

    def _hash(self, client: str) -> int:
        data = client.encode("utf-8", "surrogatepass")
        return int.from_bytes(blake2b(data, key=self._key, digest_size=4).digest()) % HASHES


def is_alive(process: int) -> bool:
    """Whether there is a process with a number."""
    with suppress(ProcessLookupError):
        os.kill(process, 0)
        return True
    return False
