"""A document version: one row of values, and the row's timestamps, ids and place."""

from typing import Any

from server.documents.values import identify
from server.schema.model import Type

PUBLISHED, DRAFT = "published", "draft"


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
        return int(self.row[0])

    @property
    def document_id(self) -> str:
        """The id that paths use."""
        return str(self.row[1])

    @property
    def locale(self) -> str:
        """The locale code; the default one where the type is not localised."""
        return str(self.row[-1])

    def get(self, name: str) -> Any:
        """The value of a column. KeyError where the type has no such column."""
        return self.row[self.type.position[name]]

    def copy(self) -> "Document":
        """The same version, for another index."""
        return Document(self.type, self.row, self.status, self.path)

    def as_draft(self) -> "Document":
        """The same document as `status=draft` shows it when nothing differs from what is published."""
        return Document(self.type, (*self.row[:-2], None, self.row[-1]), DRAFT, self.path)


def make(
    type_: Type,
    document_id: str,
    values: list[Any],
    timestamps: tuple[str, str, str | None],
    locale: str,
    path: str,
) -> Document:
    """A document from its attributes' values and (createdAt, updatedAt, publishedAt or None for a draft)."""
    row = (identify(type_.uid, document_id, locale), document_id, *values, *timestamps, locale)
    return Document(type_, row, DRAFT if timestamps[2] is None else PUBLISHED, path)


def default_order(document: Document) -> tuple[str, str, str]:
    """The key of the order without `sort`: createdAt, then documentId (then locale, for `locale=*`)."""
    row = document.row
    return (row[-4], row[1], row[-1])
