"""Substring search in text columns. The texts of a column are joined, to be searched together."""

import ctypes
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate, repeat
from typing import Any, NamedTuple

from server.bounded import Cache, size_of
from server.documents.document import Run, find_runs
from server.documents.packed_rows import SEPARATOR
from server.index.budget import Budget
from server.index.ordering import bits_of_slots, slots_of
from server.index.sorted_chunks import Notes
from server.index.type_table import SLOT_BITS, SlotBlock, Slots
from server.query.operators import text_of

_LOG2_BYTES_PER_STEP = 11  # searching 2048 bytes takes about as long as one step
_SAMPLE_MATCHES = 16  # If this many of the first 32 documents match, testing the rest one by one is faster.
_MAX_TESTED_DOCUMENTS = 32  # Up to this number, testing documents one by one is faster.

MAX_BYTES = 8 * 1024 * 1024
MAX_CACHED_CHARS = 200  # searches for longer texts are rarely repeated
_ENTRY_OVERHEAD_BYTES = 300  # approximate memory for each entry, in addition to its key and set


class JoinedTexts(NamedTuple):
    """The casefolded texts of a block of documents, joined into one text.

    `starts` contains the offsets of the texts in bytes, followed by the total length.
    """

    texts: bytes
    starts: Sequence[int]


def containing(slots: Slots, columns: Sequence[int], text: str, budget: Budget) -> int:
    """Return the bit set of the documents that contain `text` in one of the columns.

    `text` must be casefolded.
    """
    if "\0" in text:
        return 0
    needle = _encode(text)
    matching_slots: list[int] = []
    for number, (block, notes) in enumerate(zip(slots.blocks, slots.notes, strict=True)):
        positions: set[int] = set()
        # Longest texts first: they match most often, so fewer documents remain for the other columns.
        # Do not access Document objects, because that would copy memory pages shared by forked processes.
        for joined in sorted((_join_texts(block, notes, at) for at in columns), key=_length, reverse=True):
            budget.spend(len(joined.texts) >> _LOG2_BYTES_PER_STEP)
            if len(block) - len(positions) <= _MAX_TESTED_DOCUMENTS:
                positions.update(
                    _matching_positions(joined, [i for i in range(len(block)) if i not in positions], needle)
                )
            else:
                positions.update(_positions(joined, needle))
        if positions:
            budget.spend(len(positions))
            first = number << SLOT_BITS
            matching_slots.extend([first + i for i in positions])
    return bits_of_slots(matching_slots)


def containing_exactly(slots: Slots, bits: int, column: int, text: str) -> int:
    """Return the bit set of the documents in `bits` that contain `text` in the column, with the same case."""
    needle = _encode(text)
    return bits_of_slots([slot for slot in slots_of(bits) if needle in _text_at(slots, slot, column)])


def _text_at(slots: Slots, slot: int, column: int) -> bytes:
    # Returns the text, which may end with SEPARATOR.
    document = slots.document(slot)
    [(packed, first, last)] = find_runs([document])
    texts = packed.texts(column) if packed else None
    return bytes(texts.between(first, last)) if texts else _encode(document and document.read_row()[column])


class TextKey(NamedTuple):
    """Cache key for a text search."""

    uid: str
    columns: tuple[int, ...]
    locale: str
    status: str
    text: str


class SearchResults:
    """Cache for the results of text searches, which clients repeat for each page."""

    __slots__ = ("cache",)

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        # Saves 1.0 of 1.4 ms per further page of a search in 2,000 articles.
        self.cache: Cache[TextKey, int] = Cache(max_bytes, _size)

    def containing(self, slots: Slots, key: TextKey, budget: Budget) -> int:
        bits = self.cache.get(key)
        if bits is None:
            bits = containing(slots, key.columns, key.text, budget)
            if len(key.text) <= MAX_CACHED_CHARS:
                self.cache.put(key, bits)
        return bits


def _size(key: TextKey, bits: int) -> int:
    return size_of(key) + bits.bit_length() // 8 + _ENTRY_OVERHEAD_BYTES


def prepare(slots: Slots, columns: Sequence[int]) -> None:
    for block, notes in zip(slots.blocks, slots.notes, strict=True):
        runs = find_runs(block)
        for at in columns:
            notes["text", at] = _join(block, runs, at)


def _join_texts(block: SlotBlock, notes: Notes, column: int) -> JoinedTexts:
    joined: JoinedTexts | None = notes.get(("text", column))
    if joined is None:
        joined = notes["text", column] = _join(block, find_runs(block), column)
    return joined


def _join(block: SlotBlock, runs: Iterable[Run], column: int) -> JoinedTexts:
    parts: list[bytes | memoryview] = []
    starts, length = array("Q"), 0
    for packed, first, last in runs:
        texts = packed.texts(column) if packed else None
        if texts:
            starts.extend(texts.starts(first, last, length))
            parts.append(texts.between(first, last))
            length += len(parts[-1])
            continue
        for i in range(first, last):
            row = packed.row(i) if packed else document.row if (document := block[i]) else None
            starts.append(length)
            parts.append(_encode(row and row[column]) + SEPARATOR)
            length += len(parts[-1])
    joined = b"".join(parts)
    if joined.isascii():
        starts.append(length)
        return JoinedTexts(joined.lower(), starts)
    folded = joined.decode("utf-8", "surrogatepass").casefold().encode("utf-8", "surrogatepass")
    lengths = map(len, folded.split(SEPARATOR)[:-1])
    return JoinedTexts(folded, array("Q", accumulate((length + 1 for length in lengths), initial=0)))


def _encode(value: Any) -> bytes:
    # UTF-8 is self-synchronizing: searching bytes gives the same result as searching characters.
    text = "" if value is None else text_of(value)
    return text.encode("utf-8", "surrogatepass").replace(SEPARATOR, b"\1")


def _length(joined: JoinedTexts) -> int:
    return len(joined.texts)


def _positions(joined: JoinedTexts, needle: bytes) -> list[int]:
    texts, starts = joined
    count = len(starts) - 1
    positions: list[int] = []
    find = _finder(texts)
    at = find(needle, 0)
    while at >= 0:
        following = bisect_right(starts, at)
        positions.append(following - 1)
        if following == count:
            break
        if len(positions) == _SAMPLE_MATCHES and following <= 2 * _SAMPLE_MATCHES:
            return positions + _positions_from(joined, following, needle)
        at = find(needle, starts[following])
    return positions


def _positions_from(joined: JoinedTexts, first: int, needle: bytes) -> list[int]:
    starts = joined.starts[first:]
    offsets = map(joined.texts.find, repeat(needle), starts, starts[1:])
    return [i for i, at in enumerate(offsets, first) if at >= 0]


def _matching_positions(joined: JoinedTexts, positions: Sequence[int], needle: bytes) -> list[int]:
    find, starts = joined.texts.find, joined.starts
    return [i for i in positions if find(needle, starts[i], starts[i + 1]) >= 0]


# --- memmem ---------------------------------------------------------------------------------------
# For two words in the bodies of 2,000 articles, memmem needs 0.9 ms, `bytes.find` 1.75 ms and `re` 2.6 ms.
# For a frequent word, memmem and `bytes.find` both need 1.4 ms.

Find = Callable[[bytes, int], int]


def _finder(texts: bytes) -> Find:
    # Returns a function like `texts.find`, which uses memmem if available because that is faster.
    if _memmem is None:
        return texts.find
    begin, length = ctypes.cast(ctypes.c_char_p(texts), ctypes.c_void_p).value or 0, len(texts)

    def find(text: bytes, start: int) -> int:
        at = _memmem(begin + start, length - start, text, len(text))
        return at - begin if at else -1

    return find


def _load_memmem() -> Callable[[int, int, bytes, int], int | None] | None:
    try:
        function = ctypes.PyDLL(None).memmem
    except (AttributeError, OSError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return function


_memmem = _load_memmem()
