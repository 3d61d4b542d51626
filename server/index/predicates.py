"""Compiles a filter into a test of one row: comparisons by operator, conditions, relations (spec.md 5)."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from server.documents.document import Document
from server.documents.values import components_in
from server.index.effective_version import locale_inside
from server.index.snapshot import View
from server.query.ast import And, Compare, Filter, Missing, Or, Through
from server.query.operators import text_of

# A row, the document that it belongs to (for derived relations), the locale of the traversal.
Test = Callable[[tuple[Any, ...], Document | None, str], bool]


_BATCH_DOCUMENTS = 64  # The budget counts the tests of so many documents at once.


def passing(view: View, filter_: Filter, documents: Iterable[Document]) -> list[Document]:
    """Those of some documents that meet a filter."""
    return passing_test(view, compile_filter(view, filter_), weight_of(filter_), documents)


def passing_test(view: View, test: Test, weight: int, documents: Iterable[Document]) -> list[Document]:
    """Those of some documents that pass a test which takes so many steps for each."""
    found: list[Document] = []
    coming, spend = iter(documents), view.budget.spend
    while some := list(islice(coming, _BATCH_DOCUMENTS)):
        spend(weight * len(some))
        found.extend([d for d in some if test(d.read_row(), d, locale_inside(d))])
    return found


def weight_of(filter_: Filter) -> int:
    """How many steps it takes to test a row: one for each comparison. What relations lead to is not in it."""
    if isinstance(filter_, And | Or):
        return 1 + sum(map(weight_of, filter_.parts))
    return 1


def compile_filter(view: View, filter_: Filter) -> Test:
    """The function that says whether a row meets a filter."""
    if isinstance(filter_, And):
        return all_of([compile_filter(view, part) for part in filter_.parts])
    if isinstance(filter_, Or):
        return _any([compile_filter(view, part) for part in filter_.parts])
    if isinstance(filter_, Compare):
        return _compare(filter_)
    if isinstance(filter_, Missing):
        return _missing(view, filter_)
    return _through(view, filter_)


def all_of(tests: list[Test]) -> Test:
    """The test that one or more tests all pass."""
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
    """A comparison of text in any case."""
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
        return predicate(value.casefold(), operand) == wanted

    return test


def _converter(filter_: Compare) -> Callable[[Any], Any] | None:
    """What to make of a document's value before it is compared; None: nothing."""
    attribute = filter_.attribute
    textual = attribute.group == "string" or attribute.group == "date"
    if filter_.operator.folds:
        return lambda value: text_of(value).casefold()
    if attribute.type in ("json", "array", "blocks") or (filter_.operator.takes == "text" and not textual):
        return text_of
    return None


def _missing(view: View, filter_: Missing) -> Test:
    attribute, at, null = filter_.attribute, filter_.at, filter_.null
    if attribute.type == "component":
        return lambda row, owner, locale: (not row[at]) == null
    related, spend = view.resolver(attribute), view.budget.spend

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        found = related(row[at] or (), owner, locale)
        spend(len(found))
        return (not found) == null

    return test


def _through(view: View, filter_: Through) -> Test:
    """Whether something that an attribute holds meets the inner filter.

    Where it holds nothing, a row of nulls is tested, as in an outer join of SQL: this is how
    `filters[parent][id][$null]=true` finds documents without a parent.
    """
    attribute, at, inner = filter_.attribute, filter_.at, compile_filter(view, filter_.inner)
    nothing = inner((None,) * len(filter_.target.columns), None, "")
    weight, spend = weight_of(filter_.inner), view.budget.spend
    if attribute.type == "component":

        def test_components(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
            components = components_in(row[at])
            spend(weight * len(components))
            return any(inner(c.row, None, locale) for c in components) if components else nothing

        return test_components
    if not (attribute.type == "media" or attribute.derived or attribute.morph):
        return _through_stored(view, filter_, inner, nothing)
    related = view.resolver(attribute)
    known: dict[int, bool] = {}

    def meets(document: Document) -> bool:
        # Many documents share a target, such as an author or a category; each target is tested once.
        result = known.get(id(document))
        if result is None:
            spend(weight)
            result = known[id(document)] = inner(document.row, document, locale_inside(document))
        return result

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        documents = related(row[at] or (), owner, locale)
        spend(len(documents))
        return any(map(meets, documents)) if documents else nothing

    return test


def _through_stored(view: View, filter_: Through, inner: Test, nothing: bool) -> Test:
    """A relation whose rows hold the ids of its targets. Each target is tested once; None: there is none."""
    at, target = filter_.at, filter_.target
    known: dict[tuple[str, str], bool | None] = {}
    weight, spend = weight_of(filter_.inner), view.budget.spend

    def meets(document_id: str, locale: str) -> bool | None:
        key = (document_id, locale)
        if key not in known:
            spend(weight)
            document = view.version(target, document_id, locale)
            known[key] = None if document is None else inner(document.row, document, locale_inside(document))
        return known[key]

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        ids = row[at] or ()
        spend(len(ids))
        for document_id in ids:  # noqa: SIM110  # A loop costs half of any(), and mostly there is one.
            if meets(document_id, locale):
                return True
        return False

    def test_nothing(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        spend(len(row[at] or ()))
        results = {meets(document_id, locale) for document_id in row[at] or ()}
        return True in results or results <= {None}

    return test_nothing if nothing else test
