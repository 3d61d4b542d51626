"""Which documents have some text in a column: the texts of a chunk are joined, and searched in one go."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from server.bounded import Cache, size_of
from server.documents.document import Document
from server.index.budget import Budget
from server.index.ordering import Order, bits_of
from server.index.sorted_chunks import Notes
from server.query.operators import text_of

_SEPARATOR = "\0"  # in no document, since no text file may contain it
_SEARCHED_IN_A_STEP = 11  # as a power of two: that many characters take about as long as any other step

MAX_BYTES = 8 * 1024 * 1024
LONGEST_KEPT = 200  # characters; people who page through what they found search for no longer texts
_OVERHEAD = 300  # bytes; what an entry takes, about, besides its key and its set

Joined = tuple[str, Sequence[int]]  # the casefolded texts of a chunk in one, and where each begins


def containing(order: Order, at: int, text: str, budget: Budget) -> int:
    """The set of the documents whose value in the column `at` contains `text`; both as casefolded text."""
    if _SEPARATOR in text:
        return 0
    matching: list[Document] = []
    for chunk, notes in order.chunks:
        joined = _joined(chunk, notes, at)
        budget.spend(len(joined[0]) >> _SEARCHED_IN_A_STEP)
        found = [chunk[i] for i in _positions(joined, text)]
        budget.spend(len(found))
        matching.extend(found)
    return bits_of(matching)


class TextKey(NamedTuple):
    """A search in one column of the documents of a type in a locale and status, for a casefolded text."""

    uid: str
    at: int
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
            bits = containing(order, key.at, key.text, budget)
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
    parts: list[str] = []
    starts = array("Q")
    length = 0
    for document in chunk:
        value = document.row[at]
        part = _SEPARATOR if value is None else _SEPARATOR + text_of(value).casefold()
        starts.append(length)
        parts.append(part)
        length += len(part)
    return "".join(parts), starts


def _positions(joined: Joined, text: str) -> Iterator[int]:
    """The positions in the chunk of the documents that contain a text, in order."""
    texts, starts = joined
    count = len(starts)
    at = texts.find(text)
    while at >= 0:
        following = bisect_right(starts, at)
        yield following - 1
        at = texts.find(text, starts[following]) if following < count else -1
