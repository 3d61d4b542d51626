"""Schema of the search index.

Each version of a document is stored as one Whoosh document, with fields such as `text_en`.
"""

from collections.abc import Iterator
from typing import Any

from whoosh import __version__ as whoosh_version
from whoosh import columns, fields, formats

from server.search.words import NO_STEMMER, STEMMERS

VERSION = f"4 whoosh {'.'.join(map(str, whoosh_version))}"
ATTRIBUTE_POSITIONS = 1 << 20  # number of positions in the range of each attribute
LANGUAGES = (*STEMMERS, NO_STEMMER)
EVERY_DOCUMENT_TERM = "\0"  # a term in all documents of a language


class Postings(fields.FieldType):  # type: ignore[misc]
    """Whoosh field that receives ready-made postings instead of text."""

    def __init__(self, format_: Any, *, scored: bool) -> None:
        self.format, self.scorable = format_, scored
        self.analyzer = self.column_type = self.vector = None
        self.stored = self.unique = self.spelling = False

    def index(self, value: Any, **_: Any) -> Iterator[tuple[bytes, int, float, bytes]]:
        """Return the postings in `value`: (term, frequency, sum of weights, encoded positions)."""
        return iter(value)


def make_schema() -> Any:
    """Return the Whoosh schema, which contains separate fields for each language."""
    text = {f"text_{code}": Postings(formats.Positions(), scored=True) for code in LANGUAGES}
    head = {f"head_{code}": Postings(formats.Frequency(), scored=True) for code in LANGUAGES}
    word = {f"word_{code}": Postings(formats.Existence(), scored=False) for code in LANGUAGES}
    # Because of `sortable`, there is a column of keys, which can be read much faster than the stored fields.
    key = fields.ID(unique=True, stored=True, sortable=True)
    group = fields.COLUMN(columns.RefBytesColumn())
    return fields.Schema(key=key, digest=fields.STORED, group=group, **text, **head, **word)
