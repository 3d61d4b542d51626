"""Immutable sorted sequence. It consists of chunks, and a changed copy shares the unchanged chunks."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any, Generic, Self, TypeVar

T = TypeVar("T")
KeyOf = Callable[[T], Any]
Notes = dict[Any, Any]

CHUNK_ITEMS = 256


class SortedChunks(Generic[T]):
    """Items sorted by `key(item)`. Keys must be unique and never change."""

    __slots__ = ("_chunks", "_firsts", "_key", "_length", "_notes")

    def __init__(self, key: KeyOf[T], chunks: tuple[tuple[T, ...], ...] = (), length: int = 0) -> None:
        self._key = key
        self._chunks = chunks
        self._firsts = [key(chunk[0]) for chunk in chunks]
        self._notes: list[Notes | None] = [None] * len(chunks)
        self._length = length

    @classmethod
    def build(cls, items: Iterable[T], key: KeyOf[T]) -> Self:
        return cls.presorted(sorted(items, key=key), key)

    @classmethod
    def presorted(cls, ordered: list[T], key: KeyOf[T]) -> Self:
        chunks = tuple(tuple(ordered[i : i + CHUNK_ITEMS]) for i in range(0, len(ordered), CHUNK_ITEMS))
        return cls(key, chunks, len(ordered))

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._chunks)

    def slice(self, start: int, stop: int) -> list[T]:
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
        """Yield the items and the notes of each chunk.

        Notes are a dictionary in which callers can cache values.
        """
        for i, chunk in enumerate(self._chunks):
            yield chunk, self._notes[i] or self._note(i)

    def _note(self, i: int) -> Notes:
        notes = self._notes[i]
        if notes is None:
            notes = self._notes[i] = {}
        return notes

    def spans(self, low: Any, high: Any = None) -> Iterator[tuple[tuple[T, ...], Notes | None]]:
        """Yield the items with `low` <= key < `high`, by chunk. If `high` is None, there is no upper bound.

        Each chunk's items come with its notes, or with None if the chunk may be incomplete.
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

    def with_changes(self, removed: Iterable[T], added: Iterable[T]) -> Self:
        """Return a copy in which items are removed and added. Items to remove are found by their keys."""
        removed, added = list(removed), list(added)
        if len(removed) + len(added) > max(8, self._length // 8):
            keys = {self._key(item) for item in removed}
            return type(self).build([*(i for i in self if self._key(i) not in keys), *added], self._key)
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
    chunk_index = bisect_right(firsts, at) - 1
    if chunk_index < 0:
        return 0
    chunk = chunks[chunk_index]
    i = bisect_left(chunk, at, key=key)
    if i == len(chunk) or key(chunk[i]) != at:
        return 0
    remaining = chunk[:i] + chunk[i + 1 :]
    if remaining:
        chunks[chunk_index], firsts[chunk_index], notes[chunk_index] = remaining, key(remaining[0]), None
    else:
        del chunks[chunk_index], firsts[chunk_index], notes[chunk_index]
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
    chunk_index = max(bisect_right(firsts, at) - 1, 0)
    chunk = chunks[chunk_index]
    i = bisect_left(chunk, at, key=key)
    grown = (*chunk[:i], item, *chunk[i:])
    if len(grown) <= 2 * CHUNK_ITEMS:
        chunks[chunk_index], firsts[chunk_index], notes[chunk_index] = grown, key(grown[0]), None
        return
    chunks[chunk_index : chunk_index + 1] = [grown[:CHUNK_ITEMS], grown[CHUNK_ITEMS:]]
    firsts[chunk_index : chunk_index + 1] = [key(grown[0]), key(grown[CHUNK_ITEMS])]
    notes[chunk_index : chunk_index + 1] = [None, None]
