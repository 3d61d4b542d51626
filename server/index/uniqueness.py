"""Uniqueness of values among the published documents of one type in one locale."""

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

UniqueKey = tuple[str, Any, str]  # attribute path, value, locale
UniqueValues = Map[UniqueKey, tuple[Document, ...]]


class HasUniqueValues(Protocol):
    """Table that finds documents by their unique values."""

    @property
    def unique(self) -> UniqueValues:
        pass


def unique_values(type_: Type, values: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    return ((at, value) for _, at, value in _unique_values(type_, values, path))


def _unique_values(type_: Type, values: Any, path: KeyPath) -> Iterator[tuple[Type, KeyPath, Any]]:
    # Each tuple begins with the content type or component that defines the attribute.
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        at = (*path, attribute.name)
        if (attribute.unique or attribute.type == "uid") and attribute.scalar and value not in (None, ""):
            yield type_, at, value if isinstance(value, str | int | float | Decimal) else str(value)
        for inner, component in components_at(attribute, value, at):
            yield from _unique_values(component.type, component.values, inner)


def find_repeated_values(type_: Type, values: Any) -> Iterator[KeyPath]:
    paths_by_value: dict[tuple[str, str, Any], list[KeyPath]] = defaultdict(list)
    for type_or_component, path, value in _unique_values(type_, values, ()):
        paths_by_value[type_or_component.uid, attribute_path(path), value].append(path)
    for paths in paths_by_value.values():
        if len(paths) > 1:
            yield from paths


def unique_keys(document: Document) -> set[UniqueKey]:
    values = unique_values(document.type, document.read_row()[VALUES])
    return {(attribute_path(path), value, document.locale) for path, value in values}


def find_taken_values(
    table: HasUniqueValues,
    type_: Type,
    values: Any,
    document_id: str,
    locale: str,
    is_checked: Callable[[str], bool] = lambda name: True,
) -> Iterator[tuple[KeyPath, list[Document]]]:
    """Yield the path of each value that must be unique but is taken, with the other published documents that
    have it.

    `is_checked` is called with a top-level attribute's name, and returns True if it must be checked.
    """
    for path, value in unique_values(type_, values):
        if is_checked(str(path[0])):
            holders = table.unique.get((attribute_path(path), value, locale), ())
            others = [o for o in holders if o.document_id != document_id and o.status == PUBLISHED]
            if others:
                yield path, others


def find_duplicates(table: HasUniqueValues) -> Iterator[tuple[str, Any, tuple[Document, ...]]]:
    for (path, value, _), documents in table.unique.items():
        if len(documents) > 1 and len({document.document_id for document in documents}) > 1:
            yield path, value, documents
