"""Which documents have some text in a column: the texts of a chunk are joined, and searched in one go."""

import ctypes
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import repeat
from typing import NamedTuple

from server.bounded import Cache, size_of
from server.documents.document import Document
from server.index.budget import Budget
from server.index.ordering import Order, bits_of_slots
from server.index.sorted_chunks import Notes
from server.query.operators import text_of

_SEPARATOR = b"\0"  # in no document, since no text file may contain it
_SEARCHED_IN_A_STEP = 11  # as a power of two: that many bytes take about as long as any other step
_SAMPLE = 16  # Where so many of twice as many documents contain a text, the rest are looked at one by one.
_FEW = 32  # As few documents as these are looked at one by one.

MAX_BYTES = 8 * 1024 * 1024
LONGEST_KEPT = 200  # characters; people who page through what they found search for no longer texts
_OVERHEAD = 300  # bytes; what an entry takes, about, besides its key and its set


class Joined(NamedTuple):
    """The casefolded texts of a chunk in one, as UTF-8; where each begins, and the last ends; the slots.

    The slots are those of the documents. They are kept here since looking at the documents themselves
    makes a copy of the memory that a forked process shares with others.
    """

    texts: bytes
    starts: Sequence[int]
    slots: Sequence[int]


def containing(order: Order, columns: Sequence[int], text: str, budget: Budget) -> int:
    """The set of the documents with a value in one of some columns that contains `text`; both casefolded."""
    sought = _encoded(text)
    if _SEPARATOR in sought:
        return 0
    slots: list[int] = []
    for chunk, notes in order.chunks:
        found: set[int] = set()
        # The longest texts first: after them, there are few documents left to look for.
        for joined in sorted((_joined(chunk, notes, at) for at in columns), key=_length, reverse=True):
            budget.spend(len(joined.texts) >> _SEARCHED_IN_A_STEP)
            if len(chunk) - len(found) <= _FEW:
                found.update(_of_some(joined, [i for i in range(len(chunk)) if i not in found], sought))
            else:
                found.update(_positions(joined, sought))
        if found:
            budget.spend(len(found))
            slots.extend([joined.slots[i] for i in found])
    return bits_of_slots(slots)


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
        self.cache: Cache[TextKey, int] = Cache(most, _size)

    def containing(self, order: Order, key: TextKey, budget: Budget) -> int:
        """What `containing` says of an order of just the documents that the key is about."""
        bits = self.cache.get(key)
        if bits is None:
            bits = containing(order, key.columns, key.text, budget)
            if len(key.text) <= LONGEST_KEPT:
                self.cache.put(key, bits)
        return bits


def _size(key: TextKey, bits: int) -> int:
    return size_of(key) + bits.bit_length() // 8 + _OVERHEAD


def prepare(order: Order, at: int) -> None:
    """Join the texts of a column before anybody searches them."""
    for chunk, notes in order.chunks:
        _joined(chunk, notes, at)


def _joined(chunk: tuple[Document, ...], notes: Notes, at: int) -> Joined:
    joined: Joined | None = notes.get(("text", at))
    if joined is None:
        joined = notes["text", at] = _join(chunk, at)
    return joined


def _join(chunk: tuple[Document, ...], at: int) -> Joined:
    values = [document.row[at] for document in chunk]
    parts = [b"" if value is None else _encoded(text_of(value).casefold()) for value in values]
    starts = array("Q", [0])
    for part in parts:
        starts.append(starts[-1] + len(part) + 1)
    slots = array("L", [document.slot for document in chunk])
    return Joined(_SEPARATOR.join((*parts, b"")), starts, slots)


def _encoded(text: str) -> bytes:
    """In UTF-8, no character is found within others: bytes are as good to search as text."""
    return text.encode("utf-8", "surrogatepass")


def _length(joined: Joined) -> int:
    return len(joined.texts)


def _positions(joined: Joined, sought: bytes) -> list[int]:
    """The positions in the chunk of the documents that contain a text, in order."""
    texts, starts, slots = joined
    found: list[int] = []
    find = _finder(texts)
    at = find(sought, 0)
    while at >= 0:
        following = bisect_right(starts, at)
        found.append(following - 1)
        if following == len(slots):
            break
        if len(found) == _SAMPLE and following <= 2 * _SAMPLE:
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


# --- memmem, which is three times as fast as bytes.find ---------------------------------------------

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
