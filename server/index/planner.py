"""Query planner. It splits a filter into two parts: a bit set of candidates (see `index.ordering`), which is
computed from the index, and a residual filter.

The bit set always contains every matching document. If there is a residual filter, the bit set may also
contain documents that do not match, so each document must be tested with the residual filter.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from server.documents.document import DOCUMENT_ID, Document
from server.index.effective_version import EVERY_LOCALE, effective_locales, effective_status
from server.index.ordering import (
    Column,
    Order,
    above,
    at_least,
    at_most,
    below,
    bits_of,
    equal,
    is_orderable,
    not_null,
    nulls,
    starting_with,
    within,
)
from server.index.orders import ColumnKey
from server.index.predicates import (
    compile_filter,
    passing,
)
from server.index.snapshot import View
from server.index.text_search import TextKey, exactly
from server.index.type_table import Slots
from server.query.ast import And, Compare, Filter, Or, Through
from server.schema.model import Attribute, Type


class Plan(NamedTuple):
    """Result of planning a filter.

    `bits` is the bit set of candidates, or None if all documents are candidates. `rest` is the residual
    filter, or None if all candidates match.
    """

    bits: int | None = None
    rest: Filter | None = None


MAX_TESTED_CANDIDATES = 50  # For so few candidates, testing each one is cheaper than set operations.

# By operator: a function of a column's order and the operand. It returns the set of matching documents, or
# None if the set can't be computed from the order.
_RANGES: Mapping[str, Callable[[Order, Any], int | None]] = {
    "$eq": equal,
    "$in": lambda order, values: reduce(or_, (equal(order, v) for v in values), 0),
    "$lt": below,
    "$lte": at_most,
    "$gt": above,
    "$gte": at_least,
    "$between": within,
    "$startsWith": starting_with,
}
# Operators that are the negation of another operator.
_NEGATIONS: Mapping[str, str] = {"$ne": "$eq", "$notIn": "$in", "$notContainsi": "$containsi"}
# Operators that can match only texts that contain the operand, ignoring case. For $containsi, these are
# exactly the matches.
_TEXT_OPERATORS = frozenset({"$eqi", "$contains", "$containsi", "$startsWithi", "$endsWith", "$endsWithi"})


def _cost(part: Filter) -> int:
    """Return a rank that determines the order in which filters are evaluated: first comparisons, then
    relations, then text search.
    """
    if isinstance(part, And | Or):
        return max(map(_cost, part.parts), default=0)
    if isinstance(part, Compare):
        return (
            3 if part.operator.name in _TEXT_OPERATORS else 0 if part.operator.name in ("$eq", "$in") else 1
        )
    return 2


def _searched_text(part: Filter) -> str:
    """Return the casefolded text that a `$containsi` comparison searches for. For all other filters, return
    "".
    """
    if not isinstance(part, Compare) or part.operator.name != "$containsi" or part.negated:
        return ""
    if not is_orderable(part.attribute) or part.attribute.name == "locale":
        return ""
    return str(part.operand.casefold())


class Planner(NamedTuple):
    """Planner for filters on documents of one content type.

    `locale` is the locale in which relations are resolved.
    """

    view: View
    type: Type
    locale: str

    @property
    def order(self) -> Order:
        """All candidate documents, in the default order."""
        return self.view.snapshot.list(self.type, self._own_locale, self._status)

    @property
    def _slots(self) -> Slots:
        """The slots of all candidate documents."""
        return self.view.snapshot.slots(self.type, self._own_locale, self._status)

    @property
    def _own_locale(self) -> str:
        return effective_locales(self.type, self.locale, self.view.settings.locales)[0]

    @property
    def _status(self) -> str:
        return effective_status(self.type, self.view.drafts)

    def plan(self, filter_: Filter) -> Plan:
        """Return the plan for a filter."""
        if isinstance(filter_, And):
            return self._all(filter_)
        if isinstance(filter_, Or):
            return self._any(filter_)
        if isinstance(filter_, Compare):
            return self._compare(filter_)
        if isinstance(filter_, Through):
            return self._through(filter_)
        return Plan(rest=filter_)

    def _all(self, filter_: And) -> Plan:
        """Plan an And filter, beginning with its cheapest part.

        As soon as only a few candidates remain, planning stops. The parts that have not yet been planned
        become the residual filter.
        """
        bits: int | None = None
        rest: list[Filter] = []
        for part in sorted(filter_.parts, key=_cost):
            if bits is not None and bits.bit_count() <= MAX_TESTED_CANDIDATES:
                rest.append(part)
                continue
            plan = self.plan(part)
            if plan.bits is not None:
                bits = plan.bits if bits is None else bits & plan.bits
            if plan.rest is not None:
                rest.append(plan.rest)
        return Plan(bits, None if not rest else rest[0] if len(rest) == 1 else And(tuple(rest)))

    def _any(self, filter_: Or) -> Plan:
        text = _searched_text(filter_.parts[0])
        plans, columns = [], []
        for part in filter_.parts:
            if text and isinstance(part, Compare) and _searched_text(part) == text:
                columns.append(part.at)
            else:
                plans.append(self.plan(part))
        if columns:  # For `_q`, searching all columns at once is faster than one by one.
            plans.append(Plan(self._containing(text, columns)))
        exact = all(plan.rest is None for plan in plans)
        if any(plan.bits is None for plan in plans):
            return Plan(None, None if any(p.bits is None and p.rest is None for p in plans) else filter_)
        return Plan(reduce(or_, (plan.bits or 0 for plan in plans), 0), None if exact else filter_)

    # --- comparisons ---------------------------------------------------------------------------

    def _compare(self, part: Compare) -> Plan:
        name = part.operator.name
        if part.attribute.name == "documentId" and name in ("$eq", "$in") and not part.negated:
            values = part.operand if name == "$in" else [part.operand]
            return Plan(self.by_ids(values))
        if not is_orderable(part.attribute):
            return Plan(rest=part)
        if part.attribute.name == "locale":
            return self._plan_constant(part)
        if part.operator.takes == "flag":
            return Plan(self._null_test(part))
        opposite = _NEGATIONS.get(name)
        negated = part.negated != (opposite is not None)
        bits, exact = self._positive(part, opposite or name)
        if bits is None or (negated and not exact):
            return Plan(rest=part)
        if negated:
            bits = not_null(self._compared_order(part)) & ~bits
        return Plan(bits, None if exact else part)

    def _positive(self, part: Compare, name: str) -> tuple[int | None, bool]:
        """Return a pair for a comparison: the bit set of documents that match it, and whether the set is
        exact (contains only documents that match). If the set can't be computed, it is None.

        A negated operator is treated as if it were not negated: `name` is the operator without the negation.
        """
        textual = part.attribute.group in ("string", "date")
        if name in _RANGES and (textual or part.operator.takes != "text"):
            self._spend_on_sets(len(part.operand) if name == "$in" else 1)
            return _RANGES[name](self._compared_order(part), part.operand), True
        if name in _TEXT_OPERATORS:
            text = part.operand.casefold()
            if not text:
                return not_null(self._compared_order(part)), name != "$eqi"
            bits = self._containing(text, [part.at])
            if name == "$contains" and part.attribute.group == "string":
                self.view.budget.spend(bits.bit_count())
                return exactly(self._slots, bits, part.at, part.operand), True
            return bits, name == "$containsi"
        return None, False

    def _containing(self, text: str, columns: Iterable[int]) -> int:
        """Return the bit set of documents that contain `text` in at least one of the columns. `text` must be
        casefolded.
        """
        key = TextKey(self.type.uid, tuple(columns), self._own_locale, self._status, text)
        return self.view.snapshot.search_results.containing(self._slots, key, self.view.budget)

    def _null_test(self, part: Compare) -> int:
        order = self._compared_order(part)
        null = part.operand == (part.operator.name == "$null")
        return nulls(order) if null != part.negated else not_null(order)

    def _compared_order(self, part: Compare) -> Order:
        """Return the order that is sorted by the compared column."""
        return self._order_of(part.attribute, part.at)

    def _order_of(self, attribute: Attribute, at: int) -> Order:
        key = ColumnKey(self.type.uid, (Column(attribute, at),), self._own_locale, self._status)
        return self.view.snapshot.ordered(key, self.view.budget)

    def _spend_on_sets(self, count: int) -> None:
        """Charge the budget for creating or combining `count` sets."""
        self.view.budget.spend(count * (8 + (len(self.order) >> 6)))

    def _plan_constant(self, part: Compare) -> Plan:
        """Plan a comparison with a column in which all candidates have the same value."""
        first = next(iter(self.order), None)
        matches = first is not None and compile_filter(self.view, part)(first.row, first, self.locale)
        return Plan(None if matches else 0)

    def by_ids(self, ids: Iterable[str]) -> int:
        """Return the bit set of the documents with these documentIds."""
        get, locale, status = self.view.snapshot.get, self._own_locale, self._status
        return bits_of(d for i in ids if (d := get(self.type, i, locale, status)) is not None)

    # --- relations -----------------------------------------------------------------------------

    def _through(self, part: Through) -> Plan:
        """Plan a filter such as `filters[author][name]=Ann`: first find the related documents (authors) that
        match the inner filter, then the documents that refer to them.
        """
        attribute = part.attribute
        if attribute.type != "relation" or attribute.morph:
            return Plan(rest=part)
        if compile_filter(self.view, part.inner)((None,) * len(part.target.columns), None, ""):
            return Plan(rest=part)  # Documents without a target match, too. Finding them requires a scan.
        targets = self._targets(part)
        if not attribute.derived:
            return Plan(reduce(or_, (self._linking(attribute, target).bits() for target in targets), 0))
        other = part.target.attributes[attribute.mapped_by or ""]
        if (
            other.morph or not attribute.to_many
        ):  # Of several referring documents, a to-one relation resolves to only one.
            return Plan(rest=part)
        at = part.target.position[other.name]
        return Plan(self.by_ids({i for t in targets for i in self._pointing_at(t, at)}))

    def _linking(self, attribute: Attribute, target: Document) -> Order:
        linking, document_id = self.view.snapshot.linking, target.row[DOCUMENT_ID]
        order = linking(self.type, attribute.name, document_id, self._own_locale, self._status)
        self.view.budget.spend(1 + len(order))
        return order

    def _pointing_at(self, target: Document, at: int) -> Sequence[str]:
        ids: Sequence[str] = target.row[at]
        self.view.budget.spend(1 + len(ids))
        return ids

    def _targets(self, part: Through) -> Iterable[Document]:
        """Return the documents that the relation may refer to and that match the inner filter."""
        view, target = self.view, part.target
        inside = self.locale if self.type.localized else EVERY_LOCALE
        locales = effective_locales(target, inside, view.settings.locales)
        targets = [d for locale in locales for d in Planner(view, target, locale).find(part.inner)]
        if len(locales) == 1 or part.attribute.derived:
            return targets
        return [d for d in targets if view.version(target, d.document_id, inside) is d]

    def find(self, filter_: Filter) -> Iterable[Document]:
        """Return the documents that match a filter, in the default order."""
        plan = self.plan(filter_)
        candidates = self.documents(plan.bits)
        if plan.rest is None:
            return candidates
        return passing(self.view, plan.rest, candidates)

    def documents(self, bits: int | None) -> Iterable[Document]:
        """Return the documents in the bit set `bits`, in the default order. If it is None, return all
        documents.
        """
        if bits is None:
            return self.order
        self._spend_on_sets(1)
        if bits.bit_count() <= MAX_TESTED_CANDIDATES:
            return self.view.snapshot.members(self.type, self._own_locale, self._status, bits)
        return self.order.members(bits)
