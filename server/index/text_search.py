"""Which documents have some text in a column: the texts of a block are joined, and searched in one go."""

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

_LOG2_BYTES_PER_STEP = 11  # To search 2048 bytes takes about as long as any other step.
_SAMPLE_MATCHES = 16  # If half of the first documents match, the rest are tested one by one.
_MAX_TESTED_DOCUMENTS = 32  # So few documents are tested one by one.

MAX_BYTES = 8 * 1024 * 1024
MAX_CACHED_CHARS = 200  # People who page through results search for no longer texts.
_ENTRY_OVERHEAD_BYTES = 300  # What an entry takes, about, besides its key and its set.


class Joined(NamedTuple):
    """The casefolded texts of a block in one, as UTF-8; where each begins, and the last ends."""

    texts: bytes
    starts: Sequence[int]


def containing(slots: Slots, columns: Sequence[int], text: str, budget: Budget) -> int:
    """The set of the documents with a value in one of some columns that contains `text`; both casefolded.

    Documents are not looked at, which would copy the memory that a forked process shares with others.
    """
    if "\0" in text:
        return 0
    sought = _encode(text)
    holding: list[int] = []
    for number, (block, notes) in enumerate(zip(slots.blocks, slots.notes, strict=True)):
        found: set[int] = set()
        # The longest texts first: after them, there are few documents left to look for.
        for joined in sorted((_join_texts(block, notes, at) for at in columns), key=_length, reverse=True):
            budget.spend(len(joined.texts) >> _LOG2_BYTES_PER_STEP)
            if len(block) - len(found) <= _MAX_TESTED_DOCUMENTS:
                found.update(_of_some(joined, [i for i in range(len(block)) if i not in found], sought))
            else:
                found.update(_positions(joined, sought))
        if found:
            budget.spend(len(found))
            first = number << SLOT_BITS
            holding.extend([first + i for i in found])
    return bits_of_slots(holding)


def exactly(slots: Slots, bits: int, at: int, text: str) -> int:
    """Those of a set of documents whose text in a column contains another, in the same case."""
    sought = _encode(text)
    return bits_of_slots([slot for slot in slots_of(bits) if sought in _text_at(slots, slot, at)])


def _text_at(slots: Slots, slot: int, at: int) -> bytes:
    """The text of a document in a column; SEPARATOR may be behind it."""
    document = slots.document(slot)
    [(packed, first, last)] = find_runs([document])
    texts = packed.texts(at) if packed else None
    return bytes(texts.between(first, last)) if texts else _encode(document and document.read_row()[at])


class TextKey(NamedTuple):
    """A search in columns of the documents of a type in a locale and status, for a casefolded text."""

    uid: str
    columns: tuple[int, ...]
    locale: str
    status: str
    text: str


class Found:
    """The sets of documents that contain some texts, for one snapshot.

    Somebody who pages through what a search has found, or sorts it, asks for the same text again.
    """

    __slots__ = ("cache",)

    def __init__(self, most: int = MAX_BYTES) -> None:
        # Saves 1.0 ms of 1.4 of a page of a search in 2,000 articles.
        self.cache: Cache[TextKey, int] = Cache(most, _size)

    def containing(self, slots: Slots, key: TextKey, budget: Budget) -> int:
        """What `containing` says of the documents that the key is about."""
        bits = self.cache.get(key)
        if bits is None:
            bits = containing(slots, key.columns, key.text, budget)
            if len(key.text) <= MAX_CACHED_CHARS:
                self.cache.put(key, bits)
        return bits


def _size(key: TextKey, bits: int) -> int:
    return size_of(key) + bits.bit_length() // 8 + _ENTRY_OVERHEAD_BYTES


def prepare(slots: Slots, columns: Sequence[int]) -> None:
    """Join the texts of some columns before anybody searches them."""
    for block, notes in zip(slots.blocks, slots.notes, strict=True):
        runs = find_runs(block)
        for at in columns:
            notes["text", at] = _join(block, runs, at)


def _join_texts(block: SlotBlock, notes: Notes, at: int) -> Joined:
    joined: Joined | None = notes.get(("text", at))
    if joined is None:
        joined = notes["text", at] = _join(block, find_runs(block), at)
    return joined


def _join(block: SlotBlock, runs: Iterable[Run], at: int) -> Joined:
    """The casefolded texts of a block, from where they are packed, else from the rows."""
    parts: list[bytes | memoryview] = []
    starts, length = array("Q"), 0
    for packed, first, last in runs:
        texts = packed.texts(at) if packed else None
        if texts:
            starts.extend(texts.starts(first, last, length))
            parts.append(texts.between(first, last))
            length += len(parts[-1])
            continue
        for i in range(first, last):
            row = packed.row(i) if packed else document.row if (document := block[i]) else None
            starts.append(length)
            parts.append(_encode(row and row[at]) + SEPARATOR)
            length += len(parts[-1])
    joined = b"".join(parts)
    if joined.isascii():
        starts.append(length)
        return Joined(joined.lower(), starts)
    folded = joined.decode("utf-8", "surrogatepass").casefold().encode("utf-8", "surrogatepass")
    lengths = map(len, folded.split(SEPARATOR)[:-1])
    return Joined(folded, array("Q", accumulate((length + 1 for length in lengths), initial=0)))


def _encode(value: Any) -> bytes:
    """A value as text; in UTF-8, no character is found within others: bytes are as good to search as text."""
    text = "" if value is None else text_of(value)
    return text.encode("utf-8", "surrogatepass").replace(SEPARATOR, b"\1")


def _length(joined: Joined) -> int:
    return len(joined.texts)


def _positions(joined: Joined, sought: bytes) -> list[int]:
    """The positions in the block of the documents that contain a text, in order."""
    texts, starts = joined
    count = len(starts) - 1
    found: list[int] = []
    find = _finder(texts)
    at = find(sought, 0)
    while at >= 0:
        following = bisect_right(starts, at)
        found.append(following - 1)
        if following == count:
            break
        if len(found) == _SAMPLE_MATCHES and following <= 2 * _SAMPLE_MATCHES:
            return found + _from(joined, following, sought)
        at = find(sought, starts[following])
    return found


def _from(joined: Joined, first: int, sought: bytes) -> list[int]:
    """The positions, from one on, of the documents that contain a text, each looked at for itself."""
    starts = joined.starts[first:]
    found = map(joined.texts.find, repeat(sought), starts, starts[1:])
    return [i for i, at in enumerate(found, first) if at >= 0]


def _of_some(joined: Joined, positions: Sequence[int], sought: bytes) -> list[int]:
    """Those of some positions where the document contains a text."""
    find, starts = joined.texts.find, joined.starts
    return [i for i in positions if find(sought, starts[i], starts[i + 1]) >= 0]


# --- memmem ---------------------------------------------------------------------------------------
# In 2,000 bodies it finds two words in 0.9 ms, `bytes.find` in 1.75, `re` in 2.6. A frequent word takes both
# 1.4 ms.

Find = Callable[[bytes, int], int]


def _finder(texts: bytes) -> Find:
    """What finds a text in others from a position on, as `bytes.find` does."""
    if _memmem is None:
        return texts.find
    begin, length = ctypes.cast(ctypes.c_char_p(texts), ctypes.c_void_p).value or 0, len(texts)

    def find(text: bytes, start: int) -> int:
        at = _memmem(begin + start, length - start, text, len(text))
        return at - begin if at else -1

    return find


def _from_c() -> Callable[[int, int, bytes, int], int | None] | None:
    """The function of the C library, where there is one."""
    try:
        function = ctypes.PyDLL(None).memmem
    except (AttributeError, OSError):
        return None
    function.restype = ctypes.c_void_p
    function.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t)
    return function


_memmem = _from_c()
