"""A cache with a bound in bytes: what was used longest ago goes first, and keys count as values do."""

import sys
import threading
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from cachetools import LRUCache

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Keeps values by key, for several threads, in at most `most` bytes.

    `size` says about how many bytes a key and its value take. A value that is larger than the whole
    bound is not kept.
    """

    __slots__ = ("_kept", "_lock", "_size")

    def __init__(self, most: int, size: Callable[[K, V], int]) -> None:
        self._size = size
        self._lock = threading.Lock()
        self._kept: LRUCache[K, tuple[int, V]] = LRUCache(most, getsizeof=_size_of)

    def get(self, key: K) -> V | None:
        """The value of a key, or None."""
        with self._lock:
            try:
                return self._kept[key][1]
            except KeyError:
                return None

    def put(self, key: K, value: V) -> None:
        """Keep a value, or count it again where it has grown; others go where the bound is reached."""
        size = self._size(key, value)
        with self._lock:
            if size <= self._kept.maxsize:
                self._kept[key] = (size, value)
            else:
                self._kept.pop(key, None)

    def remove(self, key: K) -> None:
        """Keep nothing for a key."""
        with self._lock:
            self._kept.pop(key, None)

    def items(self) -> list[tuple[K, V]]:
        """All keys and values that are kept."""
        with self._lock:
            return [(key, kept[1]) for key, kept in self._kept.items()]

    def clear(self) -> None:
        """Keep nothing."""
        with self._lock:
            self._kept.clear()

    @property
    def most(self) -> int:
        """The bound, in bytes."""
        return int(self._kept.maxsize)

    @property
    def bytes(self) -> int:
        """About how many bytes are kept."""
        return int(self._kept.currsize)

    def __len__(self) -> int:
        return len(self._kept)


def _size_of(kept: tuple[int, V]) -> int:
    return kept[0]


def size_of(value: Hashable) -> int:
    """About how many bytes a key takes: text, numbers, and tuples of them.

    What is in a set is not counted: in keys these are permissions, which many of them share.
    """
    size = sys.getsizeof(value)
    if isinstance(value, tuple):
        for part in value:
            size += size_of(part)
    return size
