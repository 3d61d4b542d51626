"""Which documents have some text in them: the texts of a chunk are joined, and searched in one go.

A chunk that is asked again and again gets a vocabulary, which costs as much as some fifty searches.
"""

from bisect import bisect_right

from server.documents.document import Document
from server.index.ordering import Order, bits_of
from server.index.vocabulary import Vocabulary, Wanted, wanted
from server.query.operators import text_of

PATIENCE = 20  # so often a chunk is searched before its words are counted
AT_ONCE = 1  # of so many chunks words are counted in one request
_BETWEEN = "\0"  # in no document, since no text file has it


def containing(order: Order, columns: tuple[int, ...], text: str) -> int:
    """The set of the documents that contain `text`, casefolded, in some column of text or numbers."""
    if _BETWEEN in text:
        return 0
    sought, built = wanted(text), 0
    found: list[Document] = []
    for chunk, notes in order.chunks:
        texts = notes.get(("texts", columns))
        if texts is None:
            texts = notes["texts", columns] = Texts(chunk, columns)
        if not texts.vocabulary and texts.asked >= PATIENCE and built < AT_ONCE:
            texts.vocabulary, built = Vocabulary(texts.text, texts.starts), built + 1
        found.extend([chunk[i] for i in texts.with_text(sought)])
    return bits_of(found)


class Texts:
    """The casefolded texts of some columns of a chunk, joined; and their words once that pays."""

    __slots__ = ("asked", "starts", "text", "vocabulary")

    def __init__(self, chunk: tuple[Document, ...], columns: tuple[int, ...]) -> None:
        self.text, self.starts = _join(chunk, columns)
        self.asked = 0
        self.vocabulary: Vocabulary | None = None

    def with_text(self, sought: Wanted) -> list[int]:
        """The positions in the chunk of the documents that contain a text."""
        self.asked += 1
        if self.vocabulary is None or not sought.words:
            return self._search(sought.text)
        found = self.vocabulary.texts_with(sought)
        if sought.exact:
            return found
        text, starts = self.text, [*self.starts, len(self.text)]
        return [i for i in found if text.find(sought.text, starts[i], starts[i + 1]) >= 0]

    def _search(self, text: str) -> list[int]:
        found = []
        at = self.text.find(text)
        while at >= 0:
            i = bisect_right(self.starts, at)
            found.append(i - 1)
            if i == len(self.starts):
                break
            at = self.text.find(text, self.starts[i])
        return found


def _join(chunk: tuple[Document, ...], columns: tuple[int, ...]) -> tuple[str, list[int]]:
    """The casefolded texts of some columns of a chunk, and where each document's begins."""
    parts: list[str] = []
    starts: list[int] = []
    length = 0
    for document in chunk:
        row = document.row
        texts = [text_of(row[at]).casefold() for at in columns if row[at] is not None]
        folded = _BETWEEN + _BETWEEN.join(texts)
        starts.append(length)
        parts.append(folded)
        length += len(folded)
    return "".join(parts), starts
