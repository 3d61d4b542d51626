"""Sorted documents, and bit sets of documents."""
# A query for a date range takes 0.3 instead of 1.2 ms with 10,000 articles, and 0.29 instead of 0.37 ms with
# 1,000.

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from server.documents.document import Document, column_of, default_sort_key
from server.index.sorted_chunks import Notes, SortedChunks
from server.query.operators import text_of
from server.schema.model import Attribute

_AFTER_TIMESTAMPS = "\U0010ffff"  # sorts after every timestamp
_MIN_NOTED_DOCUMENTS = 32  # With fewer documents, computing a set is cheaper than caching it.
_BITS_PER_REFERENCE = 64
_BITS = tuple(1 << i for i in range(8))
_DIGIT_ONE = ord("1")
Item = TypeVar("Item")
UNORDERED_TYPES = frozenset({"json", "array", "blocks"})


@dataclass(frozen=True, slots=True)
class Column:
    """A column to sort by. `position` is its index in a row."""

    attribute: Attribute = field(compare=False)
    position: int
    descending: bool = False


class Order(SortedChunks[Document]):
    """Sorted documents, with methods that return ranges of them as bit sets."""

    __slots__ = ()

    def bits(self) -> int:
        # There may be an order for each target of a relation. To save memory, a chunk caches its bit set only
        # if the set is not larger than the chunk.
        if len(self) < _MIN_NOTED_DOCUMENTS:
            return bits_of(self)
        bits = 0
        for chunk, notes in self.chunks:
            mask = notes.get("mask")
            if mask is None:
                mask = bits_of(chunk)
                if mask.bit_length() <= _BITS_PER_REFERENCE * len(chunk):
                    notes["mask"] = mask
            bits |= mask
        return bits

    def between(self, low: Any, high: Any = None) -> int:
        """Return the bit set of the documents with `low` <= sort key < `high`.

        If `high` is None, the range has no upper bound.
        """
        bits = 0
        for span, notes in self.spans(low, high):
            bits |= bits_of(span) if notes is None else _mask(span, notes)
        return bits

    def members(self, bits: int, start: int = 0, stop: int | None = None) -> list[Document]:
        """Return a bit set's documents in sorted order, from index `start` to `stop` (exclusive)."""
        members: list[Document] = []
        remaining = bits.bit_count() if stop is None else stop
        for chunk, notes in self.chunks:
            if remaining <= 0:
                break
            inside = _mask(chunk, notes) & bits
            count = inside.bit_count()
            if count > start:
                members.extend(_pick(chunk, inside, count)[start:remaining])
            start, remaining = max(start - count, 0), remaining - count
        return members


def _pick(chunk: tuple[Document, ...], inside: int, count: int) -> list[Document] | tuple[Document, ...]:
    if count == len(chunk):
        return chunk
    data = inside.to_bytes((max(d.slot for d in chunk) >> 3) + 1, "little")
    return [d for d in chunk if data[d.slot >> 3] & _BITS[d.slot & 7]]


def _mask(chunk: tuple[Document, ...], notes: Notes) -> int:
    mask = notes.get("mask")
    if mask is None:
        mask = notes["mask"] = bits_of(chunk)
    return int(mask)


def bits_of(documents: Iterable[Document]) -> int:
    """Return the bit set of `documents`, which must have the same type, locale and status."""
    return bits_of_slots([d.slot for d in documents])


def bits_of_slots(slots: Sequence[int]) -> int:
    """Convert slot numbers to a bit set."""
    if not slots:
        return 0
    top = max(slots)
    if len(slots) << 3 > top:  # For dense sets, this method is three times as fast.
        digits = bytearray(b"0") * (top + 1)
        for slot in slots:
            digits[~slot] = _DIGIT_ONE
        return int(digits, 2)
    data = bytearray((top >> 3) + 1)
    for slot in slots:
        data[slot >> 3] |= _BITS[slot & 7]
    return int.from_bytes(data, "little")


def slots_of(bits: int) -> list[int]:
    data = bits.to_bytes((bits.bit_length() + 7) >> 3, "little")
    return [at.start() * 8 + i for at in _NONZERO_BYTE.finditer(data) for i in _ONE_BITS[data[at.start()]]]


_NONZERO_BYTE = re.compile(rb"[^\0]")
_ONE_BITS = tuple(tuple(i for i in range(8) if byte >> i & 1) for byte in range(256))


class _Reversed:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def order_of(documents: list[Document], columns: tuple[Column, ...]) -> Order:
    """Sort documents by `columns`. The documents must be in the default order."""
    for column in reversed(columns):
        values = _values(documents, column)
        documents = _sort(zip(values, documents, strict=True), descending=column.descending)
    return Order.presorted(documents, _key(columns))


def sort_by(items: Iterable[Item], value: Callable[[Item], Any], *, descending: bool) -> list[Item]:
    """Sort items stably by `value(item)`. Nulls come first, or last if `descending` is set."""
    return _sort([(value(item), item) for item in items], descending=descending)


def _sort(pairs: Iterable[tuple[Any, Item]], *, descending: bool) -> list[Item]:
    keyed = list(pairs)
    nulls = [item for v, item in keyed if v is None]
    rest = [pair for pair in keyed if pair[0] is not None]
    rest.sort(key=lambda pair: pair[0], reverse=descending)
    ordered = [item for _, item in rest]
    return ordered + nulls if descending else nulls + ordered


def value_of(column: Column) -> Callable[[Document], Any]:
    """Return a function that returns the value by which `column` sorts a document."""
    at = column.position
    if column.attribute.name == "id":
        # Numeric ids are hashes. Clients that sort by id expect the order of creation, which is the default
        # order.
        return default_sort_key
    if column.attribute.type in UNORDERED_TYPES:
        return lambda d: None if d.row[at] is None else text_of(d.row[at])
    return lambda d: d.row[at]


def _values(documents: list[Document], column: Column) -> list[Any]:
    if column.attribute.name == "id":
        return [default_sort_key(d) for d in documents]
    values = column_of(documents, column.position)
    if column.attribute.type in UNORDERED_TYPES:
        return [None if value is None else text_of(value) for value in values]
    return values


def _key(columns: tuple[Column, ...]) -> Callable[[Document], tuple[Any, ...]]:
    parts = [_key_of(column) for column in columns]
    if len(parts) == 1:
        only = parts[0]
        return lambda d: (*only(d), *default_sort_key(d))
    return lambda d: (*(v for part in parts for v in part(d)), *default_sort_key(d))


def _key_of(column: Column) -> Callable[[Document], tuple[Any, Any]]:
    value = value_of(column)
    if column.descending:
        return lambda d: ((v := value(d)) is None, _Reversed(v))
    return lambda d: ((v := value(d)) is not None, v)


# --- sets of documents by value, from an ascending order by one column ---------------------------


def nulls(order: Order) -> int:
    return order.between((False,), (True,))


def not_null(order: Order) -> int:
    return order.between((True,))


def below(order: Order, value: Any) -> int:
    return order.between((True,), (True, value))


def at_most(order: Order, value: Any) -> int:
    return order.between((True,), (True, value, _AFTER_TIMESTAMPS))


def above(order: Order, value: Any) -> int:
    return order.between((True, value, _AFTER_TIMESTAMPS))


def at_least(order: Order, value: Any) -> int:
    return order.between((True, value))


def within(order: Order, pair: Any) -> int:
    return order.between((True, pair[0]), (True, pair[1], _AFTER_TIMESTAMPS)) if pair[0] <= pair[1] else 0


def equal(order: Order, value: Any) -> int:
    return order.between((True, value), (True, value, _AFTER_TIMESTAMPS))


def starting_with(order: Order, text: str) -> int | None:
    """Return the bit set of the documents whose value starts with `text`, or None if this is impossible."""
    if not text:
        return not_null(order)
    if text[-1] == _AFTER_TIMESTAMPS:
        return None
    return order.between((True, text), (True, text[:-1] + chr(ord(text[-1]) + 1)))


def is_orderable(attribute: Attribute) -> bool:
    return attribute.scalar and attribute.type not in UNORDERED_TYPES and attribute.name != "id"
