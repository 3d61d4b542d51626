"""Which documents have some text in them: the texts of a chunk are joined, and searched in one go."""

from bisect import bisect_right

from server.documents import Document
from server.ordering import Order, bits_of
from server.sequence import Notes

_BETWEEN = "\0"  # in no document, since no text file has it


def containing(order: Order, columns: tuple[int, ...], text: str) -> int:
    """The set of the documents that contain `text`, which is casefolded, in some column, in any case."""
    if _BETWEEN in text:
        return 0
    found = 0
    for chunk, notes in order.chunks:
        found |= bits_of(_search(chunk, notes, columns, text))
    return found


def _search(
    chunk: tuple[Document, ...], notes: Notes, columns: tuple[int, ...], wanted: str
) -> list[Document]:
    kept = notes.get(("text", columns))
    if kept is None:
        kept = notes["text", columns] = _join(chunk, columns)
    text, starts = kept
    found = []
    at = text.find(wanted)
    while at >= 0:
        i = bisect_right(starts, at)
        found.append(chunk[i - 1])
        if i == len(starts):
            break
        at = text.find(wanted, starts[i])
    return found


def _join(chunk: tuple[Document, ...], columns: tuple[int, ...]) -> tuple[str, list[int]]:
    """The casefolded texts of some columns of a chunk, and where each document's begins."""
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for document in chunk:
        row = document.row
        folded = _BETWEEN + _BETWEEN.join([row[at].casefold() for at in columns if row[at] is not None])
        starts.append(length)
        parts.append(folded)
        length += len(folded)
    return "".join(parts), starts
