"""The fields of the index, and what its terms and positions mean.

One whoosh document is one version of a document of the site. Its words are in the field of its
language, `text_en`, with the positions of each term and the sum of its weights. Every attribute has
its own range of positions, ATTRIBUTE_POSITIONS long. So `title:tide` is a condition on positions. Words in
headings are in `head_en` as well, since they add to the score.

Did-you-mean and unfinished words need the words as they are written. They are in `word_en` of
documents that hold nothing else: one for all words that were new in a commit.
"""

from collections.abc import Iterator
from typing import Any

from whoosh import __version__ as whoosh_version
from whoosh import columns, fields, formats

from server.search.words import NO_STEMMER, STEMMERS

VERSION = f"3 whoosh {'.'.join(map(str, whoosh_version))}"
ATTRIBUTE_POSITIONS = 1 << 20  # Positions of an attribute.
LANGUAGES = (*STEMMERS, NO_STEMMER)
EVERY_DOCUMENT_TERM = "\0"  # Every document of a language has this term.


class Postings(fields.FieldType):  # type: ignore[misc]
    """A whoosh field whose values are ready-made postings."""

    def __init__(self, format_: Any, *, scored: bool) -> None:
        self.format, self.scorable = format_, scored
        self.analyzer = self.column_type = self.vector = None
        self.stored = self.unique = self.spelling = False

    def index(self, value: Any, **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """The postings themselves: (term, how often, sum of weights, encoded positions)."""
        return iter(value)


def make_schema() -> Any:
    """The whoosh schema of the index."""
    text = {f"text_{code}": Postings(formats.Positions(), scored=True) for code in LANGUAGES}
    head = {f"head_{code}": Postings(formats.Frequency(), scored=True) for code in LANGUAGES}
    word = {f"word_{code}": Postings(formats.Existence(), scored=False) for code in LANGUAGES}
    key = fields.ID(unique=True, stored=True)
    group = fields.COLUMN(columns.RefBytesColumn())
    return fields.Schema(key=key, digest=fields.STORED, group=group, **text, **head, **word)
