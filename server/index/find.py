"""Filtering, sorting and pagination of documents."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from server.documents.document import ID, PUBLISHED, Document, column_of, default_sort_key
from server.index.effective_version import effective_status, locale_inside
from server.index.ordering import bits_of
from server.index.planner import Planner
from server.index.predicates import Test, all_of, compile_filter, passing_test, weight_of
from server.index.publication_filter import publication_test
from server.index.snapshot import Snapshot, View
from server.index.sort import order_for, sorter
from server.index.text_search import prepare
from server.query.ast import NO_FILTER, And, Compare, Filter, Or, Query
from server.query.operators import OPERATORS
from server.schema.model import Attribute

# Attribute types that the query parameter `_q` searches.
SEARCHED_TYPES = ("string", "text", "richtext", "enumeration", "email", "uid")
MAX_DIRECT_SORT_DOCUMENTS = 100  # Larger results are sorted by using the cached order of all documents.
# Text that JavaScript's Number() accepts, as in Strapi.
_NUMBER = re.compile(
    r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+"
)


class Listing(NamedTuple):
    """One page of documents, and the total number of documents on all pages."""

    documents: Sequence[Document]
    total: int


def find(view: View, query: Query, condition: Callable[[Document], bool] | None = None) -> Listing:
    """Return one page of the matching documents.

    If the query is for exactly one locale, the documents must also meet `condition`.
    """
    locales = _locales(view, query)
    if len(locales) != 1:
        return _find_in_locales(view, query)
    locale = locales[0]
    bits = _matching(view, query, locale)
    if condition is not None:
        documents = Planner(view, query.type, locale).documents(bits)
        bits = bits_of([document for document in documents if condition(document)])
    start, stop = query.page.start, query.page.start + query.page.limit
    keys = query.selection.sort
    if bits is None:
        order = order_for(view, query.type, keys, locale)
        return Listing(order.slice(start, stop), len(order))
    total = bits.bit_count()
    if total <= MAX_DIRECT_SORT_DOCUMENTS:
        members = view.snapshot.members(query.type, locale, effective_status(query.type, view.drafts), bits)
        return Listing(sorter(view, keys)(members)[start:stop], total)
    return Listing(order_for(view, query.type, keys, locale).members(bits, start, stop), total)


def find_one(view: View, query: Query, document_id: str) -> Document | None:
    status = effective_status(query.type, view.drafts)
    versions = (view.snapshot.get(query.type, document_id, at, status) for at in _locales(view, query))
    return _first_matching(view, query, versions)


def find_numbered(view: View, query: Query, number: int) -> Document | None:
    """Return the document that matches the query and has this numeric `id`, in any locale, or None."""
    everywhere = query._replace(locales=tuple(view.settings.locales.available))
    documents = list(candidates(view, everywhere))
    numbered = zip(documents, column_of(documents, ID), strict=True)
    return _first_matching(view, query, (d for d, document_number in numbered if document_number == number))


def find_single(view: View, query: Query) -> Document | None:
    return _first_matching(view, query, candidates(view, query))


def _first_matching(view: View, query: Query, versions: Iterable[Document | None]) -> Document | None:
    test = _test(view, query, _filter(query))
    matching = (d for d in versions if d is not None and (test is None or test(d.row, d, locale_inside(d))))
    return next(matching, None)


def candidates(view: View, query: Query) -> Iterable[Document]:
    """Return all versions in the query's locales and with its status, in the default order."""
    status, locales = effective_status(query.type, view.drafts), _locales(view, query)
    lists = [view.snapshot.list(query.type, locale, status) for locale in locales]
    if len(lists) == 1:
        return lists[0]
    view.budget.spend(sum(map(len, lists)))
    return sorted(chain.from_iterable(lists), key=default_sort_key)


def _locales(view: View, query: Query) -> tuple[str, ...]:
    # If a content type has no locales, the index stores its documents under the default locale.
    if query.locales is None or not query.type.localized:
        return (view.settings.locales.default,)
    return query.locales


def _find_in_locales(view: View, query: Query) -> Listing:
    filter_ = _filter(query)
    documents, test = list(candidates(view, query)), _test(view, query, filter_)
    if test is not None:
        documents = passing_test(view, test, weight_of(filter_), documents)
    ordered = sorter(view, query.selection.sort)(documents)
    return Listing(ordered[query.page.start : query.page.start + query.page.limit], len(ordered))


def _matching(view: View, query: Query, locale: str) -> int | None:
    # Returns None if all documents match.
    planner = Planner(view, query.type, locale)
    plan = planner.plan(_filter(query))
    test = _test(view, query, plan.residual_filter or NO_FILTER)
    if test is None:
        return plan.bits
    weight = weight_of(plan.residual_filter or NO_FILTER)
    return bits_of(passing_test(view, test, weight, planner.documents(plan.bits)))


def _filter(query: Query) -> Filter:
    filters = query.selection.filter
    return And((filters, _text_filter(query))) if query.text else filters


def _test(view: View, query: Query, filter_: Filter) -> Test | None:
    # Returns None if every document passes.
    tests = [] if filter_ == NO_FILTER else [compile_filter(view, filter_)]
    publication = publication_test(view, query.type)
    if publication:
        tests.append(publication)
    return all_of(tests) if tests else None


# --- _q ----------------------------------------------------------------------------------------


def _text_filter(query: Query) -> Filter:
    at, contains, text = query.type.position, OPERATORS["$containsi"], query.text.casefold()
    parts = [Compare(a, at[a.name], contains, text) for a in _searched_attributes(query)]
    by_id = Compare(query.type.columns["documentId"], at["documentId"], OPERATORS["$eq"], query.text)
    return Or((*parts, by_id))


def prepare_texts(snapshot: Snapshot) -> None:
    """Build the texts for searches. Call this before workers are forked, so that they share the texts."""
    for type_ in snapshot.schema.content_types:
        attributes = type_.attributes.values()
        searched = [type_.position[a.name] for a in attributes if not a.private and a.type in SEARCHED_TYPES]
        for (_, status), slots in snapshot.tables[type_.uid].slots.items():
            if status == PUBLISHED:
                prepare(slots, searched)


def _searched_attributes(query: Query) -> list[Attribute]:
    is_number = _NUMBER.fullmatch(query.text.strip()) is not None
    return [
        a
        for a in query.type.attributes.values()
        if not a.private and (a.type in SEARCHED_TYPES or (is_number and a.group == "number"))
    ]
