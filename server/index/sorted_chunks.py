"""An immutable sorted sequence whose changed copies share almost everything with the original.

Items are kept in chunks. Adding or removing one copies one chunk and the list of chunks, so the cost
of a change hardly grows with the number of items, and whoever reads the old sequence is not disturbed.
Each chunk has notes: what was derived from its items, which stays valid for as long as the chunk.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")
KeyOf = Callable[[T], Any]
Notes = dict[Any, Any]

CHUNK_ITEMS = 256


class SortedChunks(Generic[T]):
    """Items in the order of `key(item)`, which must be unique and never change."""

    __slots__ = ("_chunks", "_firsts", "_key", "_length", "_notes")

    def __init__(self, key: KeyOf[T], chunks: tuple[tuple[T, ...], ...] = (), length: int = 0) -> None:
        self._key = key
        self._chunks = chunks
        self._firsts = [key(chunk[0]) for chunk in chunks]
        self._notes: list[Notes | None] = [None] * len(chunks)
        self._length = length

    @classmethod
    def of(cls, items: Iterable[T], key: KeyOf[T]) -> Self:
        """A sequence of items given in any order."""
        return cls.presorted(sorted(items, key=key), key)

    @classmethod
    def presorted(cls, ordered: list[T], key: KeyOf[T]) -> Self:
        """A sequence of items that are in order already."""
        chunks = tuple(tuple(ordered[i : i + CHUNK_ITEMS]) for i in range(0, len(ordered), CHUNK_ITEMS))
        return cls(key, chunks, len(ordered))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._chunks)

    def slice(self, start: int, stop: int) -> list[T]:
        """The items from position `start` up to, not including, `stop`."""
        items: list[T] = []
        for chunk in self._chunks:
            if stop <= 0:
                break
            if start < len(chunk):
                items.extend(islice(chunk, max(start, 0), stop))
            start -= len(chunk)
            stop -= len(chunk)
        return items

    @property
    def chunks(self) -> Iterator[tuple[tuple[T, ...], Notes]]:
        """The chunks, each with its notes, to which callers may add."""
        for i, chunk in enumerate(self._chunks):
            yield chunk, self._notes[i] or self._note(i)

    def _note(self, i: int) -> Notes:
        notes = self._notes[i]
        if notes is None:
            notes = self._notes[i] = {}
        return notes

    def spans(self, low: Any, high: Any = None) -> Iterator[tuple[tuple[T, ...], Notes | None]]:
        """The items from the key `low` up to, not including, `high`, or to the end where that is None.

        They come as whole chunks with their notes, and as parts of chunks without.
        """
        first = max(bisect_right(self._firsts, low) - 1, 0)
        last = len(self._chunks) if high is None else bisect_left(self._firsts, high)
        for i in range(first, last):
            chunk = self._chunks[i]
            if first < i and (i < last - 1 or high is None):
                yield chunk, self._note(i)
            else:
                start = bisect_left(chunk, low, key=self._key)
                stop = len(chunk) if high is None else bisect_left(chunk, high, key=self._key)
                yield chunk[start:stop], None

    def changed(self, removed: Iterable[T], added: Iterable[T]) -> Self:
        """A sequence without some items, by key, and with others."""
        removed, added = list(removed), list(added)
        if len(removed) + len(added) > max(8, self._length // 8):
            keys = {self._key(item) for item in removed}
            return type(self).of([*(i for i in self if self._key(i) not in keys), *added], self._key)
        changed = type(self).__new__(type(self))
        changed._key, changed._length = self._key, self._length
        chunks, changed._firsts, changed._notes = list(self._chunks), list(self._firsts), list(self._notes)
        for item in removed:
            changed._length -= _discard(chunks, changed._firsts, changed._notes, self._key, self._key(item))
        for item in added:
            _insert(chunks, changed._firsts, changed._notes, self._key, item)
            changed._length += 1
        changed._chunks = tuple(chunks)
        return changed


def _discard(
    chunks: list[tuple[T, ...]], firsts: list[Any], notes: list[Notes | None], key: KeyOf[T], at: Any
) -> int:
    where = bisect_right(firsts, at) - 1
    if where < 0:
        return 0
    chunk = chunks[where]
    i = bisect_left(chunk, at, key=key)
    if i == len(chunk) or key(chunk[i]) != at:
        return 0
    left = chunk[:i] + chunk[i + 1 :]
    if left:
        chunks[where], firsts[where], notes[where] = left, key(left[0]), None
    else:
        del chunks[where], firsts[where], notes[where]
    return 1


def _insert(
    chunks: list[tuple[T, ...]], firsts: list[Any], notes: list[Notes | None], key: KeyOf[T], item: T
) -> None:
    at = key(item)
    if not chunks:
        chunks.append((item,))
        firsts.append(at)
        notes.append(None)
        return
    where = max(bisect_right(firsts, at) - 1, 0)
    chunk = chunks[where]
    i = bisect_left(chunk, at, key=key)
    grown = (*chunk[:i], item, *chunk[i:])
    if len(grown) <= 2 * CHUNK_ITEMS:
        chunks[where], firsts[where], notes[where] = grown, key(grown[0]), None
        return
    chunks[where : where + 1] = [grown[:CHUNK_ITEMS], grown[CHUNK_ITEMS:]]
    firsts[where : where + 1] = [key(grown[0]), key(grown[CHUNK_ITEMS])]
    notes[where : where + 1] = [None, None]
