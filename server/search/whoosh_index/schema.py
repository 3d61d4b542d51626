"""Index schema: the fields, and the meaning of terms and positions.

One whoosh document represents one version of a document. The field for the version's language, such as
`text_en`, contains each term's positions and the sum of its weights. Each attribute has its own range of
ATTRIBUTE_POSITIONS positions, so `title:tide` is a condition on positions. Words in headings are also stored
in a field such as `head_en`, which increases their score.

To suggest words and to complete unfinished words, the index also needs words in their original spelling. They
are stored in separate whoosh documents, in a field such as `word_en`. Each commit adds one of these
documents, which contains the new words.
"""

from collections.abc import Iterator
from typing import Any

from whoosh import __version__ as whoosh_version
from whoosh import columns, fields, formats

from server.search.words import NO_STEMMER, STEMMERS

VERSION = f"4 whoosh {'.'.join(map(str, whoosh_version))}"
ATTRIBUTE_POSITIONS = 1 << 20  # number of positions for each attribute
LANGUAGES = (*STEMMERS, NO_STEMMER)
EVERY_DOCUMENT_TERM = "\0"  # All documents in a language contain this term.


class Postings(fields.FieldType):  # type: ignore[misc]
    """Whoosh field whose values are already complete postings, so whoosh need not analyze any text."""

    def __init__(self, format_: Any, *, scored: bool) -> None:
        self.format, self.scorable = format_, scored
        self.analyzer = self.column_type = self.vector = None
        self.stored = self.unique = self.spelling = False

    def index(self, value: Any, **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """Yield the postings as (term, frequency, sum of weights, encoded positions)."""
        return iter(value)


def make_schema() -> Any:
    """Return the whoosh schema."""
    text = {f"text_{code}": Postings(formats.Positions(), scored=True) for code in LANGUAGES}
    head = {f"head_{code}": Postings(formats.Frequency(), scored=True) for code in LANGUAGES}
    word = {f"word_{code}": Postings(formats.Existence(), scored=False) for code in LANGUAGES}
    # The column of keys (`sortable`) can be read much faster than the stored fields.
    key = fields.ID(unique=True, stored=True, sortable=True)
    group = fields.COLUMN(columns.RefBytesColumn())
    return fields.Schema(key=key, digest=fields.STORED, group=group, **text, **head, **word)
