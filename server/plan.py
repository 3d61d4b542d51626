"""Finds the documents that a filter can leave without looking at all: by what the index knows.

A plan is a list of candidates in default order; the filter is still asked of each. Where no part of
a filter can be planned, None: then everything is looked at.
"""

from collections.abc import Callable, Iterable
from typing import Any

from server.documents import Document, default_order
from server.index import View
from server.ordering import OrderKey, equal_to, is_orderable
from server.query import And, Compare, Filter, Through
from server.schema import Type

MOST_TARGETS = 5000  # a relation to more documents than this is looked at from the other end
Compile = Callable[[View, Filter], Any]


def plan(view: View, type_: Type, filter_: Filter, locale: str, compile_: Compile) -> list[Document] | None:
    """The shortest list of candidates that some part of a filter gives, or None.

    `locale` is the one that the walk is in, which relations through a type without locales keep.
    """
    parts = filter_.parts if isinstance(filter_, And) else (filter_,)
    plans = (_plan_part(view, type_, part, locale, compile_) for part in parts)
    return min((found for found in plans if found is not None), key=len, default=None)


def _plan_part(
    view: View, type_: Type, part: Filter, locale: str, compile_: Compile
) -> list[Document] | None:
    if isinstance(part, Compare):
        return _plan_compare(view, type_, part, locale)
    if isinstance(part, Through):
        return _plan_through(view, type_, part, locale, compile_)
    return None


def _plan_compare(view: View, type_: Type, part: Compare, locale: str) -> list[Document] | None:
    if part.negated or part.operator.name not in ("$eq", "$in") or not is_orderable(part.attribute):
        return None
    here, status = view.locale_of(type_, locale), view.status(type_)
    values = part.operand if part.operator.name == "$in" else [part.operand]
    if part.attribute.name == "documentId":
        found = [view.snapshot.get(type_, value, here, status) for value in dict.fromkeys(values)]
        return _in_default_order(d for d in found if d is not None)
    if part.attribute.name == "locale":
        return None
    order = view.snapshot.tables[type_.uid].ordered(OrderKey(part.at, here, status))
    if len(values) == 1:
        return equal_to(order, values[0])
    return _in_default_order(d for value in dict.fromkeys(values) for d in equal_to(order, value))


def _plan_through(
    view: View, type_: Type, part: Through, locale: str, compile_: Compile
) -> list[Document] | None:
    """Which targets meet the inner filter, and who points at them."""
    attribute, target = part.attribute, part.target
    if attribute.type != "relation" or attribute.derived or attribute.morph:
        return None
    test, status = compile_(view, part.inner), view.status(type_)
    if test((None,) * len(target.columns), None, locale):
        return None  # what has no target meets the filter as well
    targets: Any = plan(view, target, part.inner, locale, compile_)
    if targets is None:
        targets = view.snapshot.list(target, view.locale_of(target, locale), view.status(target))
        if len(targets) > MOST_TARGETS:
            return None
    here = view.locale_of(type_, locale)
    found = [
        view.snapshot.linking(type_, attribute.name, t.document_id, here, status)
        for t in targets
        if test(t.row, t, locale)
    ]
    if len(found) == 1:
        return list(found[0])
    return _in_default_order(document for sequence in found for document in sequence)


def _in_default_order(documents: Iterable[Document]) -> list[Document]:
    return sorted({id(d): d for d in documents}.values(), key=default_order)
