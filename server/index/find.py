"""Answers a query from one snapshot: filter, sort, page."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from server.documents.document import Document, default_order
from server.documents.values import READERS, Unreadable
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
_NUMBER = re.compile(r"[-+]?[0-9]{1,40}(\.[0-9]{1,40})?")


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
    texts, numbers = _searched(query.type), _numbers(query)
    found = containing(
        planner.order, tuple(query.type.position[a.name] for a in texts), query.text.casefold()
    )
    return found | (planner.plan(Or(numbers)).bits or 0)


def _text_filter(query: Query) -> Filter:
    """`_q` as a filter: some visible text attribute contains the text, or a number equals it."""
    operator, text, at = OPERATORS["$containsi"], query.text.casefold(), query.type.position
    return Or((*(Compare(a, at[a.name], operator, text) for a in _searched(query.type)), *_numbers(query)))


def _searched(type_: Type) -> list[Attribute]:
    return [a for a in type_.attributes.values() if a.type in SEARCHED and not a.private]


def _numbers(query: Query) -> tuple[Compare, ...]:
    """What compares the visible numbers of a document with the text, where that is a number."""
    if not _NUMBER.fullmatch(query.text.strip()):
        return ()
    visible = [a for a in query.type.attributes.values() if a.group == "number" and not a.private]
    read = ((a, _as_number(a, query.text.strip())) for a in visible)
    at, equals = query.type.position, OPERATORS["$eq"]
    return tuple(Compare(a, at[a.name], equals, number) for a, number in read if number is not None)


def _as_number(attribute: Attribute, text: str) -> Any:
    """The number that a text is under an attribute; None where it is none."""
    try:
        return READERS[attribute.type](text, attribute)
    except Unreadable:
        return None
