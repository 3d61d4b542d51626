"""Fields of the index, with the meaning of terms and positions.

One whoosh document is one version. The field of its language, `text_en`, has positions and the sum of weights
for each term. Every attribute has its own range of ATTRIBUTE_POSITIONS positions, so `title:tide` is a
condition on positions. Words in headings are in `head_en` as well, for extra score.

Suggestions and unfinished words need words as written. They are in `word_en` of separate documents, one for
the new words of each commit.
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
    """Whoosh field whose values are ready-made postings."""

    def __init__(self, format_: Any, *, scored: bool) -> None:
        self.format, self.scorable = format_, scored
        self.analyzer = self.column_type = self.vector = None
        self.stored = self.unique = self.spelling = False

    def index(self, value: Any, **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """Return the postings: (term, frequency, sum of weights, encoded positions)."""
        return iter(value)


def make_schema() -> Any:
    """Return the whoosh schema."""
    text = {f"text_{code}": Postings(formats.Positions(), scored=True) for code in LANGUAGES}
    head = {f"head_{code}": Postings(formats.Frequency(), scored=True) for code in LANGUAGES}
    word = {f"word_{code}": Postings(formats.Existence(), scored=False) for code in LANGUAGES}
    key = fields.ID(unique=True, stored=True)
    group = fields.COLUMN(columns.RefBytesColumn())
    return fields.Schema(key=key, digest=fields.STORED, group=group, **text, **head, **word)
