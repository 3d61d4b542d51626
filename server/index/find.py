"""Answers a query from one snapshot: filter, sort, page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document, default_order
from server.index.ordering import bits_of
from server.index.planner import Planner
from server.index.predicates import Test, all_of, compile_filter
from server.index.publication import publication_test
from server.index.snapshot import View
from server.index.sort import order_for, sorter
from server.index.text_search import containing
from server.query.ast import EVERYTHING, Compare, Filter, Or, Query
from server.query.operators import OPERATORS
from server.schema.model import Attribute, Type

# The types of attributes that `_q` looks into.
SEARCHED = ("string", "text", "richtext", "enumeration", "email", "uid")
FEW = 100  # so many documents are sorted as they are, without an order of everything
# What JavaScript's Number() reads as a number, which is what decides in Strapi.
_NUMBER = re.compile(
    r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+"
)


@dataclass(frozen=True, slots=True)
class Found:
    """The documents of one page, and how many there are in all."""

    documents: Sequence[Document]
    total: int


def find(view: View, query: Query) -> Found:
    """The page of documents that a query asks for, in its order."""
    locale = _locale(view, query)
    if locale is None:
        return _find_everywhere(view, query)
    bits = _matching(view, query, locale)
    start, stop = query.page.start, query.page.start + query.page.limit
    keys = query.selection.sort
    if bits is None:
        order = order_for(view, query.type, keys, locale)
        return Found(order.slice(start, stop), len(order))
    total = bits.bit_count()
    if total <= FEW:
        found = view.snapshot.few(query.type, locale, view.status(query.type), bits)
        return Found(sorter(view, keys)(found)[start:stop], total)
    return Found(order_for(view, query.type, keys, locale).members(bits, start, stop), total)


def find_one(view: View, query: Query, document_id: str) -> Document | None:
    """One document by its id, if it is there and meets the query's filters."""
    locale = query.locale if query.type.localized else view.settings.default_locale
    document = view.snapshot.get(query.type, document_id, locale, view.status(query.type))
    return _if_matching(view, query, document)


def find_single(view: View, query: Query) -> Document | None:
    """The document of a single type, if it meets the query's filters."""
    documents = candidates(view, query)
    return _if_matching(view, query, next(iter(documents), None))


def _if_matching(view: View, query: Query, document: Document | None) -> Document | None:
    test = _query_test(view, query)
    if document is None or (test and not test(document.row, document, document.locale)):
        return None
    return document


def candidates(view: View, query: Query) -> Any:
    """Every version that the query's locale and status leave, in default order."""
    status = view.status(query.type)
    locale = _locale(view, query)
    if locale is not None:
        return view.snapshot.list(query.type, locale, status)
    found = [d for locale in view.settings.locales for d in view.snapshot.list(query.type, locale, status)]
    return sorted(found, key=default_order)


def _locale(view: View, query: Query) -> str | None:
    """The one locale that a query is about; None for all of them."""
    if not query.type.localized:
        return view.settings.default_locale
    return None if query.locale == "*" else query.locale


def _find_everywhere(view: View, query: Query) -> Found:
    """Documents of all locales: everything is looked at."""
    documents, test = candidates(view, query), _query_test(view, query)
    if test:
        documents = [d for d in documents if test(d.row, d, d.locale)]
    ordered = sorter(view, query.selection.sort)(documents)
    return Found(ordered[query.page.start : query.page.start + query.page.limit], len(ordered))


def _matching(view: View, query: Query, locale: str) -> int | None:
    """The set of documents that a query's filters, `_q` and publicationFilter leave; None for all."""
    planner = Planner(view, query.type, locale)
    plan = planner.plan(query.selection.filter)
    bits = plan.bits
    if query.text:
        texts = _text_bits(planner, query)
        bits = texts if bits is None else bits & texts
    tests = [] if plan.rest is None else [compile_filter(view, plan.rest)]
    publication = publication_test(view, query.type)
    if publication:
        tests.append(publication)
    if not tests:
        return bits
    test = all_of(tests)
    return bits_of(d for d in planner.documents(bits) if test(d.row, d, locale))


def _query_test(view: View, query: Query) -> Test | None:
    """Filters, `_q` and publicationFilter as one test; None where everything passes."""
    tests = []
    if query.selection.filter != EVERYTHING:
        tests.append(compile_filter(view, query.selection.filter))
    if query.text:
        tests.append(compile_filter(view, _text_filter(query)))
    publication = publication_test(view, query.type)
    if publication:
        tests.append(publication)
    return all_of(tests) if tests else None


# --- _q ----------------------------------------------------------------------------------------


def _text_bits(planner: Planner, query: Query) -> int:
    """The documents that `_q` finds: all their texts are searched in one go."""
    type_, bits = query.type, planner.by_ids([query.text])
    for attributes in (_texts(type_), _numbers(query)):
        columns = tuple(type_.position[attribute.name] for attribute in attributes)
        if columns:
            bits |= containing(planner.order, columns, query.text.casefold())
    return bits


def _text_filter(query: Query) -> Filter:
    """`_q` as a filter: some visible text or number contains the text, or the documentId is the text."""
    at, contains, text = query.type.position, OPERATORS["$containsi"], query.text.casefold()
    parts = [Compare(a, at[a.name], contains, text) for a in (*_texts(query.type), *_numbers(query))]
    by_id = Compare(query.type.columns["documentId"], at["documentId"], OPERATORS["$eq"], query.text)
    return Or((*parts, by_id))


def _texts(type_: Type) -> list[Attribute]:
    return [a for a in type_.attributes.values() if a.type in SEARCHED and not a.private]


def _numbers(query: Query) -> list[Attribute]:
    """The visible numbers of a document, whose digits are searched where the text is a number."""
    if not _NUMBER.fullmatch(query.text.strip()):
        return []
    return [a for a in query.type.attributes.values() if a.group == "number" and not a.private]
