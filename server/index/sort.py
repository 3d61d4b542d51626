"""Documents in the order of sort keys, whether what is compared stands in them or elsewhere."""

from collections.abc import Callable, Iterable
from typing import Any

from server.documents.document import Document
from server.documents.values import Component
from server.index.ordering import Column, Order, OrderKey, arranged, value_of
from server.index.predicates import components_in
from server.index.snapshot import View
from server.query.ast import Sort, Step
from server.schema.model import Type

Sorter = Callable[[list[Document]], list[Document]]
Item = Document | Component


def sorter(view: View, keys: tuple[Sort, ...]) -> Sorter:
    """What puts documents that are in default order into the order of keys; nulls first ascending."""
    values = [(_sort_value(view, key), key.descending) for key in reversed(keys)]

    def sort(documents: list[Document]) -> list[Document]:
        if len(documents) > 1:
            for value, descending in values:
                documents = arranged(documents, value, descending=descending)
        return documents

    return sort


def order_for(view: View, type_: Type, keys: tuple[Sort, ...], locale: str) -> Order:
    """The order of all documents of a type in a locale that the index has for some keys, or makes now."""
    status = view.status(type_)
    default = view.snapshot.list(type_, locale, status)
    if not keys:
        return default
    if any(key.steps for key in keys):
        return _walked_order(view, type_, keys, default, locale)
    columns = tuple(Column(key.attribute, key.at, key.descending) for key in keys)
    return view.snapshot.tables[type_.uid].ordered(OrderKey(columns, locale, status))


def _walked_order(view: View, type_: Type, keys: tuple[Sort, ...], default: Order, locale: str) -> Order:
    """An order by values of other documents: right as long as nothing changes at all."""
    ways = tuple((tuple(step.at for step in key.steps), key.at, key.descending) for key in keys)
    known, key = view.snapshot.walked, (type_.uid, ways, locale, view.drafts)
    found = known.get(key)
    if found is None:
        ordered = sorter(view, keys)(list(default))
        found = known[key] = Order.presorted(ordered, lambda document: ())
    return found


def _sort_value(view: View, key: Sort) -> Callable[[Document], Any]:
    last = _value_at_the_end(key)
    if not key.steps:
        return last
    choose = max if key.descending else min
    walk = _walker(view, key.steps)

    def value(document: Document) -> Any:
        values = [v for item in walk(document) if (v := last(item)) is not None]
        return choose(values) if values else None

    return value


def _value_at_the_end(key: Sort) -> Callable[[Any], Any]:
    if key.attribute.name == "id" and key.steps and key.steps[-1].target.kind == "component":
        return lambda component: component.row[0]
    return value_of(Column(key.attribute, key.at))


def _walker(view: View, steps: tuple[Step, ...]) -> Callable[[Document], list[Item]]:
    """What finds the documents or components at the end of a way."""
    finders = [_finder(view, step) for step in steps]

    def walk(document: Document) -> list[Item]:
        here: list[Item] = [document]
        for find in finders:
            here = [found for item in here for found in find(item, document.row[-1])]
        return here

    return walk


def _finder(view: View, step: Step) -> Callable[[Item, str], Iterable[Item]]:
    at = step.at
    if step.attribute.type == "component":
        return lambda item, locale: components_in(item.row[at])
    related = view.resolver(step.attribute)
    return lambda item, locale: related(
        item.row[at] or (), item if isinstance(item, Document) else None, locale
    )
