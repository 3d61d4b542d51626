"""What is bounded: a cache in its bytes, and how many threads at once do what costs much."""

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from server.errors import BusyError

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Keeps values by key, for several threads, in at most `most` bytes: keys count as values do.

    What was used longest ago goes first. `size` says about how many bytes a key and its value take. A value
    that is larger than the whole bound is not kept.
    """

    __slots__ = ("_kept", "_lock", "_size", "bytes", "most")

    def __init__(self, most: int, size: Callable[[K, V], int]) -> None:
        self.most, self._size = most, size
        self.bytes = 0  # about how many are kept
        self._lock = threading.Lock()
        self._kept: OrderedDict[K, tuple[int, V]] = OrderedDict()

    def get(self, key: K) -> V | None:
        """The value of a key, or None.

        It takes the lock as well: while a key is compared in Python, as a dataclass is, other threads run,
        and an OrderedDict that they change may lead anywhere. That takes 0.3 µs.
        """
        with self._lock:
            kept = self._kept.get(key)
            if kept is None:
                return None
            self._kept.move_to_end(key)
            return kept[1]

    def put(self, key: K, value: V) -> None:
        """Keep a value, or count it again where it has grown; others go where the bound is reached."""
        size = self._size(key, value)
        with self._lock:
            self._drop(key)
            if size <= self.most:
                self._kept[key] = (size, value)
                self.bytes += size
            while self.bytes > self.most:
                self.bytes -= self._kept.popitem(last=False)[1][0]

    def remove(self, key: K) -> None:
        """Keep nothing for a key."""
        with self._lock:
            self._drop(key)

    def items(self) -> list[tuple[K, V]]:
        """All keys and values that are kept."""
        with self._lock:
            kept = list(self._kept.items())
        return [(key, value) for key, (_, value) in kept]

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._kept.clear()
            self.bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def _drop(self, key: K) -> None:
        dropped = self._kept.pop(key, None)
        if dropped is not None:
            self.bytes -= dropped[0]


def size_of(value: Hashable) -> int:
    """About how many bytes a key takes: text, numbers, and tuples of them.

    What is in a set is not counted: in keys these are permissions, which many of them share.
    """
    size = sys.getsizeof(value)
    if isinstance(value, tuple):
        for part in value:
            size += size_of(part)
    return size


class BoundedMutex:
    """Lets one thread of a process at a time do something. Some others may wait; more are refused.

    Taken by `take`, or as the context of a block.
    """

    def __init__(self, what: str, waiting: int, longest: float) -> None:
        """`what` is asked for by too many; so many may wait, each for `longest` seconds."""
        self._what, self._longest = what, longest
        self._places, self._turn = threading.Semaphore(waiting + 1), threading.Lock()

    def take_if_free(self) -> bool:
        """Take the turn without waiting, if nobody has it."""
        if self._places.acquire(blocking=False):
            if self._turn.acquire(blocking=False):
                return True
            self._places.release()
        return False

    def take(self) -> None:
        """Wait for the turn. Raises BusyError where too many wait, or it takes too long."""
        if self._places.acquire(blocking=False):
            if self._turn.acquire(timeout=self._longest):
                return
            self._places.release()
        raise BusyError(f"Too many requests at once {self._what}; try again")

    def leave(self) -> None:
        """Let the next one go on."""
        self._turn.release()
        self._places.release()

    def __enter__(self) -> None:
        self.take()

    def __exit__(self, *_: object) -> None:
        self.leave()
