"""Uniqueness: which values only one document may have, and who has them.

An attribute is unique by its option `unique`, or as a `uid`; inside of components too. A value is taken if
another document of the type has published it in the same locale. Drafts take nothing, and are not refused.
Empty text is no value.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, Protocol

from immutables import Map

from server.documents.document import PUBLISHED, VALUES, Document
from server.documents.values import components_at
from server.formats.text_positions import KeyPath, attribute_path
from server.schema.model import Type

TAKEN_MESSAGE = "must be unique: another document has this value"
REPEATED_MESSAGE = "must be unique: another component of this document has this value"

UniqueKey = tuple[str, Any, str]  # the path of an attribute, a value of it, and a locale
UniqueValues = Map[UniqueKey, tuple[Document, ...]]


class Indexed(Protocol):
    """The documents of one type, by their unique values: `index.type_table.Table`."""

    @property
    def unique(self) -> UniqueValues:
        """The versions that have a value, by `UniqueKey`; made on first use."""


def unique_values(type_: Type, values: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Yield the path and value of every attribute in a row that no other document may have the value of."""
    return ((at, value) for _, at, value in _unique_values(type_, values, path))


def _unique_values(type_: Type, values: Any, path: KeyPath) -> Iterator[tuple[Type, KeyPath, Any]]:
    """Yield what `unique_values` does, with the type or component that has the attribute."""
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        at = (*path, attribute.name)
        if (attribute.unique or attribute.type == "uid") and attribute.scalar and value not in (None, ""):
            yield type_, at, value if isinstance(value, str | int | float | Decimal) else str(value)
        for inner, component in components_at(attribute, value, at):
            yield from _unique_values(component.type, component.values, inner)


def find_repeated(type_: Type, values: Any) -> Iterator[KeyPath]:
    """Yield the path of each unique value in a row that another component in the same list has."""
    found: dict[tuple[str, str, Any], list[KeyPath]] = defaultdict(list)
    for holder, path, value in _unique_values(type_, values, ()):
        found[holder.uid, attribute_path(path), value].append(path)
    for paths in found.values():
        if len(paths) > 1:
            yield from paths


def unique_keys(document: Document) -> set[UniqueKey]:
    """Return the keys by which an index of unique values has a version."""
    values = unique_values(document.type, document.read_row()[VALUES])
    return {(attribute_path(path), value, document.locale) for path, value in values}


def find_taken(
    table: Indexed,
    type_: Type,
    values: Any,
    document_id: str,
    locale: str,
    is_checked: Callable[[str], bool] = lambda name: True,
) -> Iterator[tuple[KeyPath, list[Document]]]:
    """Yield the path of each unique value that another published document already has, with those documents.

    `is_checked` tells by name which attributes of the type count.
    """
    for path, value in unique_values(type_, values):
        if is_checked(str(path[0])):
            found = table.unique.get((attribute_path(path), value, locale), ())
            others = [o for o in found if o.document_id != document_id and o.status == PUBLISHED]
            if others:
                yield path, others


def find_duplicates(table: Indexed) -> Iterator[tuple[str, Any, tuple[Document, ...]]]:
    """Yield the path of each unique value that several documents have, the value, and all their versions."""
    for (path, value, _), documents in table.unique.items():
        if len(documents) > 1 and len({document.document_id for document in documents}) > 1:
            yield path, value, documents
