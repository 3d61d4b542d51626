"""Documents in the order of sort keys: of their own values, and of values at the end of a path."""

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
    """What puts documents that are in default order into the order of keys; nulls first ascending."""
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
    """What puts the components of a list, in a document of a locale, into the order of keys."""
    values = [(_sort_value(view, key), key.descending, _is_id(key)) for key in reversed(keys)]
    spend = view.budget.spend

    def sort(components: Sequence[Component], locale: str) -> Sequence[Component]:
        spend(len(components) * len(values))
        # A component's number is made from its place, so that the order of numbers is that of the list.
        place = {id(component): i for i, component in enumerate(components)}
        for value, descending, by_id in values if len(components) > 1 else ():
            components = sort_by(
                components,
                lambda c: place[id(c)] if by_id else value(c, locale),  # noqa: B023
                descending=descending,
            )
        return components

    return sort


def sort_each(items: Sequence[T], sorts: Mapping[str, Callable[..., Sequence[T]]], *inside: str) -> list[T]:
    """Items of several types, those of each sorted by what sorts its uid, in the places that they have.

    `inside` is the locale, for components.
    """
    ordered = list(items)
    for uid, sort in sorts.items():
        places = [i for i, item in enumerate(ordered) if item.type.uid == uid]
        for i, item in zip(places, sort([ordered[i] for i in places], *inside), strict=True):
            ordered[i] = item
    return ordered


def _is_id(key: Sort) -> bool:
    return not key.steps and key.attribute.name == "id"


def order_for(view: View, type_: Type, keys: tuple[Sort, ...], locale: str) -> Order:
    """The order by some keys of all documents of a type in a locale, which the index makes on first use."""
    status = effective_status(type_, view.drafts)
    default = view.snapshot.list(type_, locale, status)
    if not keys:
        return default
    if any(key.steps for key in keys):
        paths = tuple(((*(step.at for step in key.steps), key.at), key.descending) for key in keys)
        path_key = PathKey(type_.uid, paths, locale, view.drafts)
        return view.snapshot.orders.get(path_key, lambda: _order_by_paths(view, keys, default))
    columns = tuple(Column(key.attribute, key.at, key.descending) for key in keys)
    return view.snapshot.ordered(ColumnKey(type_.uid, columns, locale, status), view.budget)


def _order_by_paths(view: View, keys: tuple[Sort, ...], default: Order) -> Order:
    """The order of all documents by keys of which some lead to other documents."""
    # Its keys are left out: they serve changes and searches for a range, of which this order sees none.
    return Order.presorted(sorter(view, keys)(list(default)), lambda document: ())


def _document_value(view: View, key: Sort) -> Callable[[Document], Any]:
    """What a document is sorted by."""
    if not key.steps:
        return _value_at_the_end(key)
    value = _sort_value(view, key)
    return lambda document: value(document, locale_inside(document))


def _sort_value(view: View, key: Sort) -> Callable[[Item, str], Any]:
    """What a document or component is sorted by: of several values the first in the order, null included."""
    last = _value_at_the_end(key)
    value: Callable[[Item, str], Any] = lambda item, locale: last(item)  # noqa: E731
    if not key.steps:
        return value
    for step in reversed(key.steps):
        value = _first_value(view, step, value, descending=key.descending)
    reached = value
    return lambda item, locale: None if (found := reached(item, locale)) is _NOWHERE else found


_NOWHERE = object()  # what a path that ends early leads to: it has no value, whereas null is one
_UNKNOWN = object()


def _first_value(
    view: View, step: Step, value: Callable[[Item, str], Any], *, descending: bool
) -> Callable[[Item, str], Any]:
    """Return a function that aggregates a to-many step: of the values it leads to, the one that sorts first.

    The value of an item is computed once, however many paths lead to it.
    """
    follow, spend = _follower(view, step), view.budget.spend
    known: dict[int, Any] = {}  # What is in a snapshot stays in memory, so that an id names one item.

    def first(item: Item, locale: str) -> Any:
        items = follow(item, locale)
        spend(1 + len(items))
        values = []
        for reached in items:
            found = known.get(id(reached), _UNKNOWN)
            if found is _UNKNOWN:
                found = known[id(reached)] = value(reached, _locale_at(reached, locale))
            if found is not _NOWHERE:
                values.append(found)
        if len(values) < 2:
            return values[0] if values else _NOWHERE
        filled = [found for found in values if found is not None]
        if descending:
            return max(filled) if filled else None
        return min(filled) if len(filled) == len(values) else None

    return first


def _locale_at(item: Item, locale: str) -> str:
    """The locale in which an item leads to others; a component is in that of its document."""
    return locale_inside(item) if isinstance(item, Document) else locale


def _value_at_the_end(key: Sort) -> Callable[[Any], Any]:
    if key.attribute.name == "id" and key.steps and key.steps[-1].target.kind == "component":
        return lambda component: component.row[ID]
    return value_of(Column(key.attribute, key.at))


def _follower(view: View, step: Step) -> Callable[[Item, str], Sequence[Item]]:
    at = step.at
    if step.attribute.type == "component":
        return lambda item, locale: components_in(item.row[at])
    related = view.resolver(step.attribute)
    return lambda item, locale: related(
        item.row[at] or (), item if isinstance(item, Document) else None, locale
    )
