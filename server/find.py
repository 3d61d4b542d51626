"""Answers a query from one snapshot: filter, sort, page. Every filter becomes one Python function."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from server.documents import DRAFT, PUBLISHED, Document, default_order
from server.index import View
from server.operators import text_of
from server.ordering import OrderKey, is_orderable
from server.plan import plan
from server.query import And, Compare, Filter, Missing, Or, Query, Sort, Step, Through
from server.schema import Attribute, Type
from server.values import READERS, Component, Unreadable

# The types of attributes that `_q` looks into.
SEARCHED = ("string", "text", "richtext", "enumeration", "email", "uid")
_NUMBER = re.compile(r"[-+]?[0-9]{1,40}(\.[0-9]{1,40})?")

# A row, the document that it belongs to (for derived relations), the locale that the walk is in.
Test = Callable[[tuple[Any, ...], Document | None, str], bool]


@dataclass(frozen=True, slots=True)
class Found:
    """The documents of one page, and how many there are in all."""

    documents: Sequence[Document]
    total: int


def find(view: View, query: Query) -> Found:
    """The page of documents that a query asks for, in its order."""
    test = _query_test(view, query)
    page = query.page
    documents = _planned(view, query) if test else _ordered(view, query)
    if documents is None:
        documents = candidates(view, query)
        if test is None and not query.selection.sort and not isinstance(documents, list):
            return Found(documents.slice(page.start, page.start + page.limit), len(documents))
    elif test is None:
        return Found(documents.slice(page.start, page.start + page.limit), len(documents))
    matching = list(documents) if test is None else [d for d in documents if test(d.row, d, d.locale)]
    ordered = in_order(view, matching, query.selection.sort)
    return Found(ordered[page.start : page.start + page.limit], len(matching))


def _locale(view: View, query: Query) -> str | None:
    """The one locale that a query is about; None for all of them."""
    if not query.type.localized:
        return view.settings.default_locale
    return None if query.locale == "*" else query.locale


def _planned(view: View, query: Query) -> Any:
    """The candidates that the index gives for the filters, or None."""
    locale = _locale(view, query)
    if locale is None:
        return None
    return plan(view, query.type, query.selection.filter, locale, compile_filter)


def _ordered(view: View, query: Query) -> Any:
    """Everything in the order of the one sort key there is, where the index has such an order."""
    locale, keys = _locale(view, query), query.selection.sort
    if locale is None or len(keys) != 1 or keys[0].steps or not is_orderable(keys[0].attribute):
        return None
    table = view.snapshot.tables[query.type.uid]
    return table.ordered(OrderKey(keys[0].at, locale, view.status(query.type), keys[0].descending))


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
    if not query.type.localized:
        return view.snapshot.list(query.type, view.settings.default_locale, status)
    if query.locale != "*":
        return view.snapshot.list(query.type, query.locale, status)
    found = [d for locale in view.settings.locales for d in view.snapshot.list(query.type, locale, status)]
    return sorted(found, key=default_order)


def _query_test(view: View, query: Query) -> Test | None:
    """Filters, `_q` and publicationFilter as one test; None where everything passes."""
    tests = []
    if query.selection.filter != And(()):
        tests.append(compile_filter(view, query.selection.filter))
    if query.text:
        tests.append(_text_test(query.type, query.text))
    if query.publication and query.type.draft_publish:
        tests.append(_publication_test(view, query.publication))
    return _all(tests) if tests else None


# --- filters -----------------------------------------------------------------------------------


def compile_filter(view: View, filter_: Filter) -> Test:
    """The function that says whether a row meets a filter."""
    if isinstance(filter_, And):
        return _all([compile_filter(view, part) for part in filter_.parts])
    if isinstance(filter_, Or):
        return _any([compile_filter(view, part) for part in filter_.parts])
    if isinstance(filter_, Compare):
        return _compare(filter_)
    if isinstance(filter_, Missing):
        return _missing(view, filter_)
    return _through(view, filter_)


def _all(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda row, owner, locale: all(test(row, owner, locale) for test in tests)


def _any(tests: list[Test]) -> Test:
    return lambda row, owner, locale: any(test(row, owner, locale) for test in tests)


def _compare(filter_: Compare) -> Test:
    at, operand, wanted = filter_.at, filter_.operand, not filter_.negated
    operator = filter_.operator
    predicate = operator.predicate
    if operator.takes == "flag":
        return lambda row, owner, locale: predicate(row[at], operand) == wanted
    if operator.folds and filter_.attribute.group in ("string", "date"):
        return _folding(filter_)
    convert = _converter(filter_)
    if convert is not None:

        def test_converted(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
            value = row[at]
            return value is not None and predicate(convert(value), operand) == wanted

        return test_converted

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        value = row[at]
        return value is not None and predicate(value, operand) == wanted

    return test


def _folding(filter_: Compare) -> Test:
    """A comparison of text in any case; a document keeps its text without case."""
    at, operand, wanted, predicate = (
        filter_.at,
        filter_.operand,
        not filter_.negated,
        filter_.operator.predicate,
    )

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        value = row[at]
        if value is None:
            return False
        return predicate(value.casefold() if owner is None else owner.folded(at), operand) == wanted

    return test


def _converter(filter_: Compare) -> Callable[[Any], Any] | None:
    """What to make of a document's value before it is compared; None: nothing."""
    attribute = filter_.attribute
    textual = attribute.group == "string" or attribute.group == "date"
    if filter_.operator.folds:
        return str.casefold if textual else lambda value: text_of(value).casefold()
    if attribute.type in ("json", "array", "blocks") or (filter_.operator.takes == "text" and not textual):
        return text_of
    return None


def _missing(view: View, filter_: Missing) -> Test:
    attribute, at, null = filter_.attribute, filter_.at, filter_.null
    if attribute.type == "component":
        return lambda row, owner, locale: (not row[at]) == null
    return lambda row, owner, locale: (not view.related(attribute, row[at] or (), owner, locale)) == null


def _through(view: View, filter_: Through) -> Test:
    """Whether something that an attribute holds meets the inner filter.

    Where it holds nothing, a row of nulls is asked, as SQL's outer join has it: that is how
    `filters[parent][id][$null]=true` finds what has no parent.
    """
    attribute, at, inner = filter_.attribute, filter_.at, compile_filter(view, filter_.inner)
    nothing = inner((None,) * len(filter_.target.columns), None, "")
    if attribute.type == "component":

        def test_components(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
            held = _components(row[at])
            return any(inner(c.row, None, locale) for c in held) if held else nothing

        return test_components
    if not (attribute.type == "media" or attribute.derived or attribute.morph):
        return _through_stored(view, filter_, inner, nothing)
    known: dict[tuple[int, str], bool] = {}

    def meets(document: Document, locale: str) -> bool:
        # Many documents share a target (an author, a category): each is asked once in a locale.
        inside = document.locale if document.type.localized else locale
        answer = known.get((id(document), inside))
        if answer is None:
            answer = known[(id(document), inside)] = inner(document.row, document, inside)
        return answer

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        held = view.related(attribute, row[at] or (), owner, locale)
        return any(meets(document, locale) for document in held) if held else nothing

    return test


def _through_stored(view: View, filter_: Through, inner: Test, nothing: bool) -> Test:
    """A relation whose rows hold the targets' ids: each target is asked once, None where it is gone."""
    at, target, snapshot = filter_.at, filter_.target, view.snapshot
    status = view.status(target)
    known: dict[tuple[str, str], bool | None] = {}

    def meets(document_id: str, locale: str) -> bool | None:
        key = (document_id, locale)
        if key not in known:
            found = snapshot.get(target, document_id, view.locale_of(target, locale), status)
            known[key] = None if found is None else inner(found.row, found, locale)
        return known[key]

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        return any(meets(document_id, locale) for document_id in row[at] or ())

    def test_nothing(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        answers = {meets(document_id, locale) for document_id in row[at] or ()}
        return True in answers or answers <= {None}

    return test_nothing if nothing else test


def _components(value: Any) -> tuple[Component, ...]:
    return value if isinstance(value, tuple) else (value,) if value is not None else ()


def _text_test(type_: Type, text: str) -> Test:
    """`_q`: some visible text attribute contains the text, or a number equals it."""
    wanted, number = text.casefold(), text.strip()
    visible = [(type_.position[n], a) for n, a in type_.attributes.items() if not a.private]
    texts = [at for at, attribute in visible if attribute.type in SEARCHED]
    numbers = []
    if _NUMBER.fullmatch(number):
        for at, attribute in visible:
            if attribute.group == "number" and (operand := _as_number(attribute, number)) is not None:
                numbers.append((at, operand))

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        for at in texts:
            value = row[at]
            if value is not None and wanted in (value.casefold() if owner is None else owner.folded(at)):
                return True
        return any(row[at] == operand for at, operand in numbers)

    return test


def _as_number(attribute: Attribute, text: str) -> Any:
    """The number that a text is under an attribute; None where it is none."""
    try:
        return READERS[attribute.type](text, attribute)
    except Unreadable:
        return None


def _publication_test(view: View, wanted: str) -> Test:
    """`publicationFilter`, as recorded in tests/conformance/scenarios/drafts.json."""
    snapshot, locales = view.snapshot, view.settings.locales

    def version(document: Document, status: str, locale: str) -> Document | None:
        return snapshot.get(document.type, document.document_id, locale, status)

    def modified(document: Document) -> bool:
        live, draft = (version(document, s, document.locale) for s in (PUBLISHED, DRAFT))
        return live is not None and draft is not None and live.row[2:-4] != draft.row[2:-4]

    def anywhere(document: Document) -> bool:
        return any(version(document, PUBLISHED, locale) for locale in locales)

    def live(document: Document) -> bool:
        return version(document, PUBLISHED, document.locale) is not None

    tests: dict[str, Callable[[Document], bool]] = {
        "never-published": lambda d: not live(d),
        "has-published-version": live,
        "modified": modified,
        "unmodified": lambda d: live(d) and not modified(d),
        "never-published-document": lambda d: not anywhere(d),
        "has-published-version-document": anywhere,
        "published-without-draft": lambda d: False,  # a published document always has a draft
        "published-with-draft": lambda d: d.status == PUBLISHED,
    }
    test = tests[wanted]
    return lambda row, owner, locale: owner is not None and test(owner)


# --- sort --------------------------------------------------------------------------------------


def in_order(view: View, documents: list[Document], keys: tuple[Sort, ...]) -> list[Document]:
    """Documents in default order → in the order of sort keys; nulls come first ascending."""
    for key in reversed(keys):
        documents = _by_key(view, documents, key)
    return documents


def _by_key(view: View, documents: list[Document], key: Sort) -> list[Document]:
    value = _sort_value(view, key)
    keyed = [(value(d), d) for d in documents]
    nulls = [d for v, d in keyed if v is None]
    rest = [pair for pair in keyed if pair[0] is not None]
    rest.sort(key=lambda pair: pair[0], reverse=key.descending)
    ordered = [d for _, d in rest]
    return ordered + nulls if key.descending else nulls + ordered


def _sort_value(view: View, key: Sort) -> Callable[[Document], Any]:
    last = _last_value(key)
    if not key.steps:
        return lambda document: last(document.row, document)
    choose = max if key.descending else min

    def value(document: Document) -> Any:
        rows = _walk(view, key.steps, document)
        values = [v for row, owner in rows if (v := last(row, owner)) is not None]
        return choose(values) if values else None

    return value


def _last_value(key: Sort) -> Callable[[tuple[Any, ...], Document | None], Any]:
    """What is compared at the end of a key's way."""
    at, attribute = key.at, key.attribute
    if attribute.name == "id":
        # The derived number has no meaning; clients that sort by id mean the order of creation.
        return lambda row, owner: default_order(owner) if owner else row[0]
    if attribute.type in ("json", "array", "blocks"):
        return lambda row, owner: None if row[at] is None else text_of(row[at])
    return lambda row, owner: row[at]


def _walk(
    view: View, steps: tuple[Step, ...], document: Document
) -> list[tuple[tuple[Any, ...], Document | None]]:
    """The rows at the end of a way through relations and components."""
    here: list[tuple[tuple[Any, ...], Document | None]] = [(document.row, document)]
    locale = document.locale
    for step in steps:
        there: list[tuple[tuple[Any, ...], Document | None]] = []
        for row, owner in here:
            if step.attribute.type == "component":
                there += [(c.row, None) for c in _components(row[step.at])]
            else:
                there += [(d.row, d) for d in view.related(step.attribute, row[step.at], owner, locale)]
        here = there
    return here
