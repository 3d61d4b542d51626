"""Compiler that converts a filter to a test of one row (spec.md 5)."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from server.documents.document import Document
from server.documents.values import components_in
from server.index.effective_version import locale_inside
from server.index.snapshot import View
from server.query.ast import And, Compare, EmptyAttribute, Filter, Or, RelatedMatch
from server.query.operators import text_of

# (row, its document, locale for relations) → whether the row matches. Inverse relations need the document.
Test = Callable[[tuple[Any, ...], Document | None, str], bool]


_BATCH_DOCUMENTS = 64  # number of documents for which the budget is charged at once


def passing(view: View, filter_: Filter, documents: Iterable[Document]) -> list[Document]:
    return passing_test(view, compile_filter(view, filter_), weight_of(filter_), documents)


def passing_test(view: View, test: Test, weight: int, documents: Iterable[Document]) -> list[Document]:
    passed: list[Document] = []
    remaining, spend = iter(documents), view.budget.spend
    while batch := list(islice(remaining, _BATCH_DOCUMENTS)):
        spend(weight * len(batch))
        passed.extend([d for d in batch if test(d.read_row(), d, locale_inside(d))])
    return passed


def weight_of(filter_: Filter) -> int:
    # one step per comparison; related documents are charged separately
    if isinstance(filter_, And | Or):
        return 1 + sum(map(weight_of, filter_.parts))
    return 1


def compile_filter(view: View, filter_: Filter) -> Test:
    """Compile a filter to a test, which is a function that returns True if a row matches."""
    if isinstance(filter_, And):
        return all_of([compile_filter(view, part) for part in filter_.parts])
    if isinstance(filter_, Or):
        return _any([compile_filter(view, part) for part in filter_.parts])
    if isinstance(filter_, Compare):
        return _compare(filter_)
    if isinstance(filter_, EmptyAttribute):
        return _missing(view, filter_)
    return _through(view, filter_)


def all_of(tests: list[Test]) -> Test:
    if len(tests) == 1:
        return tests[0]
    return lambda row, owner, locale: all(test(row, owner, locale) for test in tests)


def _any(tests: list[Test]) -> Test:
    return lambda row, owner, locale: any(test(row, owner, locale) for test in tests)


def _compare(filter_: Compare) -> Test:
    at, operand, expected = filter_.column_index, filter_.operand, not filter_.negated
    operator = filter_.operator
    predicate = operator.predicate
    if operator.operand_kind == "flag":
        return lambda row, owner, locale: predicate(row[at], operand) == expected
    if operator.ignores_case and filter_.attribute.group in ("string", "date"):
        return _folding(filter_)
    convert = _converter(filter_)
    if convert is not None:

        def test_converted(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
            value = row[at]
            return value is not None and predicate(convert(value), operand) == expected

        return test_converted

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        value = row[at]
        return value is not None and predicate(value, operand) == expected

    return test


def _folding(filter_: Compare) -> Test:
    at, operand, expected, predicate = (
        filter_.column_index,
        filter_.operand,
        not filter_.negated,
        filter_.operator.predicate,
    )

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        value = row[at]
        if value is None:
            return False
        return predicate(value.casefold(), operand) == expected

    return test


def _converter(filter_: Compare) -> Callable[[Any], Any] | None:
    attribute = filter_.attribute
    textual = attribute.group == "string" or attribute.group == "date"
    if filter_.operator.ignores_case:
        return lambda value: text_of(value).casefold()
    if attribute.type in ("json", "array", "blocks") or (
        filter_.operator.operand_kind == "text" and not textual
    ):
        return text_of
    return None


def _missing(view: View, filter_: EmptyAttribute) -> Test:
    attribute, at, null = filter_.attribute, filter_.column_index, filter_.null
    if attribute.type == "component":
        return lambda row, owner, locale: (not row[at]) == null
    related, spend = view.resolver(attribute), view.budget.spend

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        documents = related(row[at] or (), owner, locale)
        spend(len(documents))
        return (not documents) == null

    return test


def _through(view: View, filter_: RelatedMatch) -> Test:
    # Without related items, the inner filter is applied to a row of nulls, as in an SQL outer join.
    attribute, at, inner = filter_.attribute, filter_.column_index, compile_filter(view, filter_.inner)
    matches_nulls = inner((None,) * len(filter_.target.columns), None, "")
    weight, spend = weight_of(filter_.inner), view.budget.spend
    if attribute.type == "component":

        def test_components(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
            components = components_in(row[at])
            spend(weight * len(components))
            return any(inner(c.row, None, locale) for c in components) if components else matches_nulls

        return test_components
    if not (attribute.type == "media" or attribute.derived or attribute.morph):
        return _through_stored(view, filter_, inner, matches_nulls)
    related = view.resolver(attribute)
    results: dict[int, bool] = {}

    def meets(document: Document) -> bool:
        # Many documents share a target, such as an author, so each target is tested only once.
        result = results.get(id(document))
        if result is None:
            spend(weight)
            result = results[id(document)] = inner(document.row, document, locale_inside(document))
        return result

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        documents = related(row[at] or (), owner, locale)
        spend(len(documents))
        return any(map(meets, documents)) if documents else matches_nulls

    return test


def _through_stored(view: View, filter_: RelatedMatch, inner: Test, matches_nulls: bool) -> Test:
    # For relations that are stored as ids. Each target is tested only once.
    at, target = filter_.column_index, filter_.target
    results: dict[tuple[str, str], bool | None] = {}
    weight, spend = weight_of(filter_.inner), view.budget.spend

    def meets(document_id: str, locale: str) -> bool | None:
        key = (document_id, locale)
        if key not in results:
            spend(weight)
            document = view.version(target, document_id, locale)
            results[key] = (
                None if document is None else inner(document.row, document, locale_inside(document))
            )
        return results[key]

    def test(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        ids = row[at] or ()
        spend(len(ids))
        for document_id in ids:  # noqa: SIM110  # A loop is twice as fast as any() for the usual single id.
            if meets(document_id, locale):
                return True
        return False

    def test_with_nulls(row: tuple[Any, ...], owner: Document | None, locale: str) -> bool:
        spend(len(row[at] or ()))
        outcomes = {meets(document_id, locale) for document_id in row[at] or ()}
        return True in outcomes or outcomes <= {None}

    return test_with_nulls if matches_nulls else test
