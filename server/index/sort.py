"""Sorting of documents and components by their own values or those of related documents."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from server.documents.document import ID, Document
from server.documents.values import Component, components_in
from server.index.effective_version import effective_status, locale_inside
from server.index.ordering import Column, Order, sort_by, value_of
from server.index.orders import ColumnKey, PathKey
from server.index.snapshot import View
from server.query.ast import Sort, Step
from server.schema.model import Type

Sorter = Callable[[list[Document]], list[Document]]
Item = Document | Component
T = TypeVar("T", Document, Component)


def sorter(view: View, keys: tuple[Sort, ...]) -> Sorter:
    """Return a function that sorts documents, which must be passed in the default order."""
    values = [(_document_value(view, key), key.descending) for key in reversed(keys)]
    spend = view.budget.spend

    def sort(documents: list[Document]) -> list[Document]:
        if len(documents) > 1 and values:
            spend(len(documents) * len(values))
            for value, descending in values:
                documents = sort_by(documents, value, descending=descending)
        return documents

    return sort


def component_sorter(
    view: View, keys: tuple[Sort, ...]
) -> Callable[[Sequence[Component], str], Sequence[Component]]:
    """Return a function that sorts components. Its second argument is the locale of the document."""
    values = [(_sort_value(view, key), key.descending, _is_id(key)) for key in reversed(keys)]
    spend = view.budget.spend

    def sort(components: Sequence[Component], locale: str) -> Sequence[Component]:
        spend(len(components) * len(values))
        # A component's id depends on its position, so components are sorted by position instead of id.
        position = {id(component): i for i, component in enumerate(components)}
        for value, descending, by_id in values if len(components) > 1 else ():
            components = sort_by(
                components,
                lambda c: position[id(c)] if by_id else value(c, locale),  # noqa: B023
                descending=descending,
            )
        return components

    return sort


def sort_each(
    items: Sequence[T], sort_functions: Mapping[str, Callable[..., Sequence[T]]], *arguments: str
) -> list[T]:
    """Sort the items of each type in a mixed list. The type at each position stays the same."""
    ordered = list(items)
    for uid, sort in sort_functions.items():
        positions = [i for i, item in enumerate(ordered) if item.type.uid == uid]
        for i, item in zip(positions, sort([ordered[i] for i in positions], *arguments), strict=True):
            ordered[i] = item
    return ordered


def _is_id(key: Sort) -> bool:
    return not key.steps and key.attribute.name == "id"


def order_for(view: View, type_: Type, keys: tuple[Sort, ...], locale: str) -> Order:
    """Return a content type's documents in a locale, sorted by `keys`. The result is cached."""
    status = effective_status(type_, view.drafts)
    default = view.snapshot.list(type_, locale, status)
    if not keys:
        return default
    if any(key.steps for key in keys):
        paths = tuple(
            ((*(step.column_index for step in key.steps), key.column_index), key.descending) for key in keys
        )
        path_key = PathKey(type_.uid, paths, locale, view.drafts)
        return view.snapshot.orders.get(path_key, lambda: _order_by_paths(view, keys, default))
    columns = tuple(Column(key.attribute, key.column_index, key.descending) for key in keys)
    return view.snapshot.ordered(ColumnKey(type_.uid, columns, locale, status), view.budget)


def _order_by_paths(view: View, keys: tuple[Sort, ...], default: Order) -> Order:
    # The key function is unused: this order is neither changed nor searched by range.
    return Order.presorted(sorter(view, keys)(list(default)), lambda document: ())


def _document_value(view: View, key: Sort) -> Callable[[Document], Any]:
    if not key.steps:
        return _last_value(key)
    value = _sort_value(view, key)
    return lambda document: value(document, locale_inside(document))


def _sort_value(view: View, key: Sort) -> Callable[[Item, str], Any]:
    # If an item has several values, only the one that comes first in the sort order counts.
    last = _last_value(key)
    value: Callable[[Item, str], Any] = lambda item, locale: last(item)  # noqa: E731
    if not key.steps:
        return value
    for step in reversed(key.steps):
        value = _first_value(view, step, value, descending=key.descending)
    reached = value
    return lambda item, locale: None if (result := reached(item, locale)) is _NOWHERE else result


_NOWHERE = object()  # result of a path without a target, which differs from the value null
_UNKNOWN = object()


def _first_value(
    view: View, step: Step, value: Callable[[Item, str], Any], *, descending: bool
) -> Callable[[Item, str], Any]:
    follow, spend = _follower(view, step), view.budget.spend
    # Keyed by id(), which is unique because the snapshot keeps its items in memory.
    cached: dict[int, Any] = {}

    def first(item: Item, locale: str) -> Any:
        items = follow(item, locale)
        spend(1 + len(items))
        values = []
        for reached in items:
            sort_value = cached.get(id(reached), _UNKNOWN)
            if sort_value is _UNKNOWN:
                sort_value = cached[id(reached)] = value(reached, _locale_at(reached, locale))
            if sort_value is not _NOWHERE:
                values.append(sort_value)
        if len(values) < 2:
            return values[0] if values else _NOWHERE
        filled = [sort_value for sort_value in values if sort_value is not None]
        if descending:
            return max(filled) if filled else None
        return min(filled) if len(filled) == len(values) else None

    return first


def _locale_at(item: Item, locale: str) -> str:
    return locale_inside(item) if isinstance(item, Document) else locale


def _last_value(key: Sort) -> Callable[[Any], Any]:
    if key.attribute.name == "id" and key.steps and key.steps[-1].target.kind == "component":
        return lambda component: component.row[ID]
    return value_of(Column(key.attribute, key.column_index))


def _follower(view: View, step: Step) -> Callable[[Item, str], Sequence[Item]]:
    at = step.column_index
    if step.attribute.type == "component":
        return lambda item, locale: components_in(item.row[at])
    related = view.resolver(step.attribute)
    return lambda item, locale: related(
        item.row[at] or (), item if isinstance(item, Document) else None, locale
    )
