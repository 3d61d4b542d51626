"""Document versions."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

from server.documents.packed_rows import PackedRows, Row
from server.documents.values import derive_id, same_values
from server.schema.model import Type

PUBLISHED, DRAFT = "published", "draft"

# Positions of the system columns in a row (`Type.columns`). The attributes are between them.
ID, DOCUMENT_ID = 0, 1
CREATED_AT, UPDATED_AT, PUBLISHED_AT, LOCALE = -4, -3, -2, -1
VALUES = slice(2, -4)
Key = tuple[str, str, str]  # createdAt, documentId, locale
_KEY: Callable[[Row], Key] = itemgetter(CREATED_AT, DOCUMENT_ID, LOCALE)

# Adjacent rows: (packed rows, start, end). If the rows are not packed, the first item is None, and start and
# end are positions in the list of documents.
Run = tuple[PackedRows | None, int, int]


class Document:
    """A draft or published version of a document in one locale. It is immutable.

    `slot`, its number in the index, is -1 until the version is indexed.
    """

    __slots__ = ("_at", "_packed", "_row", "key", "path", "slot", "status", "type")

    def __init__(self, type_: Type, row: Row, status: str, path: str) -> None:
        self.type, self.status, self.path, self.key = type_, status, path, _KEY(row)
        self._row: Row | None = row
        self._packed: PackedRows | None = None
        self._at = self.slot = -1

    @classmethod
    def unread(cls, type_: Type, key: Key, status: str, path: str, packed: PackedRows, at: int) -> "Document":
        # The row is not unpacked until it is needed.
        document = cls.__new__(cls)
        document.type, document.status, document.path, document.key = type_, status, path, key
        document._row, document._packed, document._at, document.slot = None, packed, at, -1
        return document

    @property
    def row(self) -> Row:
        row = self._row
        if row is None:
            row = self._row = self.read_row()
        return row

    def read_row(self) -> Row:
        if self._row is not None or self._packed is None:
            return self.row
        row = self._packed.row(self._at)
        return _without_publication(row) if self.status == DRAFT else row

    @property
    def packed(self) -> PackedRows | None:
        return self._packed

    @property
    def is_read(self) -> bool:
        return self._row is not None

    def drop_row(self) -> None:
        # A packed row needs much less memory.
        if self._packed is not None:
            self._row = None

    def has_row_of(self, other: "Document") -> bool:
        # For example, a copy of a document shares the original's row.
        if self._packed is not None:
            return (self._packed, self._at, self.status) == (other._packed, other._at, other.status)
        return self._row is other._row

    @property
    def id(self) -> int:
        """The numeric id (spec.md 2.2), which differs from `document_id`."""
        return int(self.row[ID])

    @property
    def document_id(self) -> str:
        return self.key[1]

    @property
    def values(self) -> tuple[Any, ...]:
        return self.row[VALUES]

    @property
    def created_at(self) -> str:
        return self.key[0]

    @property
    def updated_at(self) -> str:
        return str(self.row[UPDATED_AT])

    @property
    def published_at(self) -> str | None:
        published: str | None = self.row[PUBLISHED_AT]
        return published

    @property
    def locale(self) -> str:
        return self.key[2]

    def get(self, name: str) -> Any:
        return self.row[self.type.position[name]]

    def copy(self) -> "Document":
        return self._of_status(self.status)

    def with_values(self, values: Mapping[str, Any]) -> "Document":
        row = (values.get(name, value) for name, value in zip(self.type.columns, self.row, strict=True))
        return Document(self.type, tuple(row), self.status, self.path)

    def as_draft(self) -> "Document":
        return self._of_status(DRAFT)

    def _of_status(self, status: str) -> "Document":
        if self._packed is not None:
            return Document.unread(self.type, self.key, status, self.path, self._packed, self._at)
        row = _without_publication(self.row) if status == DRAFT else self.row
        return Document(self.type, row, status, self.path)


def make_version(
    type_: Type,
    document_id: str,
    values: Iterable[Any],
    timestamps: tuple[str, str, str | None],
    locale: str,
    path: str,
    *,
    number: int | None = None,
) -> Document:
    """Create a version. If publishedAt is None, the version is a draft.

    `timestamps` are createdAt, updatedAt and publishedAt. `number` is the numeric id.
    """
    if number is None:
        number = derive_id(type_.uid, document_id, locale)
    row = (number, document_id, *values, *timestamps, locale)
    return Document(type_, row, DRAFT if timestamps[2] is None else PUBLISHED, path)


def default_sort_key(document: Document) -> Key:
    return document.key


def column_of(documents: Iterable[Document], index: int) -> list[Any]:
    """Return each document's value in the column `index`, if possible without unpacking whole rows."""
    values, columns = [], dict[PackedRows, Sequence[Any]]()
    for document in documents:
        packed = document._packed
        if document._row is not None or packed is None:
            values.append(document.row[index])
            continue
        column = columns.get(packed)
        if column is None:
            column = columns[packed] = packed.column(index)
        hidden = document.status == DRAFT and index - len(document.type.columns) == PUBLISHED_AT
        values.append(None if hidden else column[document._at])
    return values


def in_packed_order(documents: Iterable[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: (id(document._packed), document._at))


def find_runs(documents: Sequence[Document | None]) -> list[Run]:
    """Split documents into runs whose rows are adjacent in the same packed rows.

    Each run is a tuple: the packed rows (None if the documents are not packed), the start and the end
    (exclusive).
    """
    runs: list[Run] = []
    for i, document in enumerate(documents):
        packed, at = (document._packed, document._at) if document and document._packed else (None, i)
        if runs and runs[-1][0] is packed and runs[-1][2] == at:
            runs[-1] = (packed, runs[-1][1], at + 1)
        else:
            runs.append((packed, at, at + 1))
    return runs


def packed_rows_of(documents: Sequence[Document]) -> PackedRows | None:
    [(packed, first, last), *others] = find_runs(documents)
    return packed if packed and not others and (first, last) == (0, len(packed)) else None


def _without_publication(row: Row) -> Row:
    return row if row[PUBLISHED_AT] is None else (*row[:PUBLISHED_AT], None, row[LOCALE])


def equal(old: Document, new: Document) -> bool:
    return same_values(old.row, new.row) and old.status == new.status and old.type is new.type
