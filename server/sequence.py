"""An immutable sorted sequence whose changed copies share almost everything with the original.

Documents of a type stand in one of these, in their default order. Items are kept in chunks; adding
or removing one copies one chunk and the list of chunks, so the cost of a change hardly grows with
the number of documents, and a reader of the old sequence never notices.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Generic, TypeVar

T = TypeVar("T")
Key = Callable[[T], Any]

CHUNK = 256


class Sequence(Generic[T]):
    """Items in the order of `key(item)`, which must be unique and never change."""

    __slots__ = ("_chunks", "_firsts", "_key", "_length")

    def __init__(self, key: Key[T], chunks: tuple[tuple[T, ...], ...] = (), length: int = 0) -> None:
        self._key = key
        self._chunks = chunks
        self._firsts = [key(chunk[0]) for chunk in chunks]
        self._length = length

    @classmethod
    def of(cls, items: Iterable[T], key: Key[T]) -> "Sequence[T]":
        """A sequence of items given in any order."""
        return cls.presorted(sorted(items, key=key), key)

    @classmethod
    def presorted(cls, ordered: list[T], key: Key[T]) -> "Sequence[T]":
        """A sequence of items that are in order already."""
        chunks = tuple(tuple(ordered[i : i + CHUNK]) for i in range(0, len(ordered), CHUNK))
        return cls(key, chunks, len(ordered))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._chunks)

    def slice(self, start: int, stop: int) -> list[T]:
        """The items from position `start` up to, not including, `stop`."""
        found: list[T] = []
        for chunk in self._chunks:
            if stop <= 0:
                break
            if start < len(chunk):
                found.extend(islice(chunk, max(start, 0), stop))
            start -= len(chunk)
            stop -= len(chunk)
        return found

    def between(self, low: Any, high: Any) -> list[T]:
        """The items whose key is at least `low` and less than `high`."""
        first = max(bisect_right(self._firsts, low) - 1, 0)
        last = bisect_left(self._firsts, high)
        found: list[T] = []
        for chunk in self._chunks[first:last]:
            start = bisect_left(chunk, low, key=self._key)
            found.extend(chunk[start : bisect_left(chunk, high, key=self._key)])
        return found

    def change(self, remove: Iterable[T], add: Iterable[T]) -> "Sequence[T]":
        """A sequence without the items of `remove` (by key) and with those of `add`."""
        remove, add = list(remove), list(add)
        if len(remove) + len(add) > max(8, self._length // 8):
            gone = {self._key(item) for item in remove}
            return Sequence.of([*(i for i in self if self._key(i) not in gone), *add], self._key)
        chunks = list(self._chunks)
        firsts = list(self._firsts)
        length = self._length
        for item in remove:
            length -= _discard(chunks, firsts, self._key, self._key(item))
        for item in add:
            _insert(chunks, firsts, self._key, item)
            length += 1
        changed = Sequence.__new__(Sequence)
        changed._key, changed._chunks = self._key, tuple(chunks)
        changed._firsts, changed._length = firsts, length
        return changed


def _discard(chunks: list[tuple[T, ...]], firsts: list[Any], key: Key[T], at: Any) -> int:
    where = bisect_right(firsts, at) - 1
    if where < 0:
        return 0
    chunk = chunks[where]
    i = bisect_left(chunk, at, key=key)
    if i == len(chunk) or key(chunk[i]) != at:
        return 0
    left = chunk[:i] + chunk[i + 1 :]
    if left:
        chunks[where], firsts[where] = left, key(left[0])
    else:
        del chunks[where], firsts[where]
    return 1


def _insert(chunks: list[tuple[T, ...]], firsts: list[Any], key: Key[T], item: T) -> None:
    at = key(item)
    if not chunks:
        chunks.append((item,))
        firsts.append(at)
        return
    where = max(bisect_right(firsts, at) - 1, 0)
    chunk = chunks[where]
    i = bisect_left(chunk, at, key=key)
    grown = (*chunk[:i], item, *chunk[i:])
    if len(grown) <= 2 * CHUNK:
        chunks[where], firsts[where] = grown, key(grown[0])
        return
    chunks[where : where + 1] = [grown[:CHUNK], grown[CHUNK:]]
    firsts[where : where + 1] = [key(grown[0]), key(grown[CHUNK])]
