"""A document version: one row of values, with its ids and timestamps, and the file it came from."""

from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import Any

from server.documents.values import identify
from server.schema.model import Type

PUBLISHED, DRAFT = "published", "draft"

# Where the service's own columns stand in a row (`Type.columns`), and between them the attributes.
ID, DOCUMENT_ID = 0, 1
CREATED_AT, UPDATED_AT, PUBLISHED_AT, LOCALE = -4, -3, -2, -1
VALUES = slice(2, -4)
_ORDER = itemgetter(CREATED_AT, DOCUMENT_ID, LOCALE)


def edited_status(type_: Type) -> str:
    """The status of the versions that editors work on: drafts, where the type has them."""
    return DRAFT if type_.draft_publish else PUBLISHED


class Document:
    """One version of a document: of a locale, published or draft. Never changed once made.

    `row` holds the values in the order of `type.columns`; `path` is the file it came from. `slot` is
    its number in the index, given once, -1 before. A plain class with slots, not a dataclass: a site
    has many thousands of them.
    """

    __slots__ = ("path", "row", "slot", "status", "type")

    def __init__(self, type_: Type, row: tuple[Any, ...], status: str, path: str) -> None:
        self.type, self.row, self.status, self.path = type_, row, status, path
        self.slot = -1

    @property
    def id(self) -> int:
        """The derived number (spec.md 2.2)."""
        return int(self.row[ID])

    @property
    def document_id(self) -> str:
        """The id that paths use."""
        return str(self.row[DOCUMENT_ID])

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the attributes, in the order of `type.attributes`."""
        return self.row[VALUES]

    @property
    def created_at(self) -> str:
        """When the document was made, as a timestamp."""
        return str(self.row[CREATED_AT])

    @property
    def updated_at(self) -> str:
        """When this version was last changed, as a timestamp."""
        return str(self.row[UPDATED_AT])

    @property
    def published_at(self) -> str | None:
        """When this version was published, as a timestamp; None for a draft."""
        published: str | None = self.row[PUBLISHED_AT]
        return published

    @property
    def locale(self) -> str:
        """The locale code; the default one where the type is not localised."""
        return str(self.row[LOCALE])

    def get(self, name: str) -> Any:
        """The value of a column. KeyError where the type has no such column."""
        return self.row[self.type.position[name]]

    def copy(self) -> "Document":
        """The same version, for another index."""
        return Document(self.type, self.row, self.status, self.path)

    def with_values(self, values: Mapping[str, Any]) -> "Document":
        """The same version with other values in some columns, by name."""
        row = (values.get(name, value) for name, value in zip(self.type.columns, self.row, strict=True))
        return Document(self.type, tuple(row), self.status, self.path)

    def as_draft(self) -> "Document":
        """The same document as `status=draft` shows it when nothing differs from what is published."""
        return Document(self.type, (*self.row[:PUBLISHED_AT], None, self.row[LOCALE]), DRAFT, self.path)


def make(
    type_: Type,
    document_id: str,
    values: Iterable[Any],
    timestamps: tuple[str, str, str | None],
    locale: str,
    path: str,
    *,
    number: int | None = None,
) -> Document:
    """A document from its attributes' values and (createdAt, updatedAt, publishedAt or None for a draft).

    `number` is its id, where that does not follow from the document id.
    """
    if number is None:
        number = identify(type_.uid, document_id, locale)
    row = (number, document_id, *values, *timestamps, locale)
    return Document(type_, row, DRAFT if timestamps[2] is None else PUBLISHED, path)


def default_order(document: Document) -> tuple[str, str, str]:
    """The key of the order without `sort`: createdAt, then documentId (then locale, for `locale=*`)."""
    key: tuple[str, str, str] = _ORDER(document.row)
    return key
