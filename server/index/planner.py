"""Query planner, which splits a filter into a bit set and a filter for the remaining conditions."""

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
from server.index.text_search import TextKey, containing_exactly
from server.index.type_table import Slots
from server.query.ast import And, Compare, Filter, Or, RelatedMatch
from server.schema.model import Attribute, Type


class Plan(NamedTuple):
    """Documents that can match a filter. If `bits` is None, all documents can match.

    The documents must still be tested with `residual_filter`, if it is not None.
    """

    bits: int | None = None
    residual_filter: Filter | None = None


MAX_TESTED_CANDIDATES = 50  # with so few candidates, testing each one is cheaper than set operations

# Functions that compute the set of matches from a column's order and the operand, or None if that's
# impossible.
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
# Operators that negate another operator.
_NEGATIONS: Mapping[str, str] = {"$ne": "$eq", "$notIn": "$in", "$notContainsi": "$containsi"}
# Operators whose matches all contain the operand, ignoring case.
_TEXT_OPERATORS = frozenset({"$eqi", "$contains", "$containsi", "$startsWithi", "$endsWith", "$endsWithi"})


def _cost(part: Filter) -> int:
    # Comparisons come first, then relations, then text searches.
    if isinstance(part, And | Or):
        return max(map(_cost, part.parts), default=0)
    if isinstance(part, Compare):
        return (
            3 if part.operator.name in _TEXT_OPERATORS else 0 if part.operator.name in ("$eq", "$in") else 1
        )
    return 2


def _searched_text(part: Filter) -> str:
    # The result is "" for filters other than `$containsi` comparisons.
    if not isinstance(part, Compare) or part.operator.name != "$containsi" or part.negated:
        return ""
    if not is_orderable(part.attribute) or part.attribute.name == "locale":
        return ""
    return str(part.operand.casefold())


class Planner(NamedTuple):
    """Planner for one content type. Relations are resolved in `locale`."""

    view: View
    type: Type
    locale: str

    @property
    def order(self) -> Order:
        return self.view.snapshot.list(self.type, self._own_locale, self._status)

    @property
    def _slots(self) -> Slots:
        return self.view.snapshot.slots(self.type, self._own_locale, self._status)

    @property
    def _own_locale(self) -> str:
        return effective_locales(self.type, self.locale, self.view.settings.locales)[0]

    @property
    def _status(self) -> str:
        return effective_status(self.type, self.view.drafts)

    def plan(self, filter_: Filter) -> Plan:
        if isinstance(filter_, And):
            return self._all(filter_)
        if isinstance(filter_, Or):
            return self._any(filter_)
        if isinstance(filter_, Compare):
            return self._compare(filter_)
        if isinstance(filter_, RelatedMatch):
            return self._through(filter_)
        return Plan(residual_filter=filter_)

    def _all(self, filter_: And) -> Plan:
        # Cheapest parts first. Once few candidates remain, the other parts become the residual filter.
        bits: int | None = None
        rest: list[Filter] = []
        for part in sorted(filter_.parts, key=_cost):
            if bits is not None and bits.bit_count() <= MAX_TESTED_CANDIDATES:
                rest.append(part)
                continue
            plan = self.plan(part)
            if plan.bits is not None:
                bits = plan.bits if bits is None else bits & plan.bits
            if plan.residual_filter is not None:
                rest.append(plan.residual_filter)
        return Plan(bits, None if not rest else rest[0] if len(rest) == 1 else And(tuple(rest)))

    def _any(self, filter_: Or) -> Plan:
        text = _searched_text(filter_.parts[0])
        plans, columns = [], []
        for part in filter_.parts:
            if text and isinstance(part, Compare) and _searched_text(part) == text:
                columns.append(part.column_index)
            else:
                plans.append(self.plan(part))
        if columns:  # For `_q`, searching all columns at once is faster than one by one.
            plans.append(Plan(self._containing(text, columns)))
        exact = all(plan.residual_filter is None for plan in plans)
        if any(plan.bits is None for plan in plans):
            return Plan(
                None, None if any(p.bits is None and p.residual_filter is None for p in plans) else filter_
            )
        return Plan(reduce(or_, (plan.bits or 0 for plan in plans), 0), None if exact else filter_)

    # --- comparisons ---------------------------------------------------------------------------

    def _compare(self, part: Compare) -> Plan:
        name = part.operator.name
        if part.attribute.name == "documentId" and name in ("$eq", "$in") and not part.negated:
            values = part.operand if name == "$in" else [part.operand]
            return Plan(self.by_ids(values))
        if not is_orderable(part.attribute):
            return Plan(residual_filter=part)
        if part.attribute.name == "locale":
            return self._plan_constant(part)
        if part.operator.operand_kind == "flag":
            return Plan(self._null_test(part))
        opposite = _NEGATIONS.get(name)
        negated = part.negated != (opposite is not None)
        bits, exact = self._possible_matches(part, opposite or name)
        if bits is None or (negated and not exact):
            return Plan(residual_filter=part)
        if negated:
            bits = not_null(self._compared_order(part)) & ~bits
        return Plan(bits, None if exact else part)

    def _possible_matches(self, part: Compare, operator_name: str) -> tuple[int | None, bool]:
        """Return the bit set of the documents that can match, and whether all of them do match.

        The bit set is None if it can't be determined.
        """
        textual = part.attribute.group in ("string", "date")
        if operator_name in _RANGES and (textual or part.operator.operand_kind != "text"):
            self._spend_on_sets(len(part.operand) if operator_name == "$in" else 1)
            return _RANGES[operator_name](self._compared_order(part), part.operand), True
        if operator_name in _TEXT_OPERATORS:
            text = part.operand.casefold()
            if not text:
                return not_null(self._compared_order(part)), operator_name != "$eqi"
            bits = self._containing(text, [part.column_index])
            if operator_name == "$contains" and part.attribute.group == "string":
                self.view.budget.spend(bits.bit_count())
                return containing_exactly(self._slots, bits, part.column_index, part.operand), True
            return bits, operator_name == "$containsi"
        return None, False

    def _containing(self, text: str, columns: Iterable[int]) -> int:
        key = TextKey(self.type.uid, tuple(columns), self._own_locale, self._status, text)
        return self.view.snapshot.search_results.containing(self._slots, key, self.view.budget)

    def _null_test(self, part: Compare) -> int:
        order = self._compared_order(part)
        null = part.operand == (part.operator.name == "$null")
        return nulls(order) if null != part.negated else not_null(order)

    def _compared_order(self, part: Compare) -> Order:
        return self._order_of(part.attribute, part.column_index)

    def _order_of(self, attribute: Attribute, column: int) -> Order:
        key = ColumnKey(self.type.uid, (Column(attribute, column),), self._own_locale, self._status)
        return self.view.snapshot.ordered(key, self.view.budget)

    def _spend_on_sets(self, count: int) -> None:
        self.view.budget.spend(count * (8 + (len(self.order) >> 6)))

    def _plan_constant(self, part: Compare) -> Plan:
        # The column has the same value in all candidates, so it is enough to test one of them.
        first = next(iter(self.order), None)
        matches = first is not None and compile_filter(self.view, part)(first.row, first, self.locale)
        return Plan(None if matches else 0)

    def by_ids(self, ids: Iterable[str]) -> int:
        get, locale, status = self.view.snapshot.get, self._own_locale, self._status
        return bits_of(d for i in ids if (d := get(self.type, i, locale, status)) is not None)

    # --- relations -----------------------------------------------------------------------------

    def _through(self, part: RelatedMatch) -> Plan:
        attribute = part.attribute
        if attribute.type != "relation" or attribute.morph:
            return Plan(residual_filter=part)
        if compile_filter(self.view, part.inner)((None,) * len(part.target.columns), None, ""):
            # Documents without a target match, too. Only a scan can find them.
            return Plan(residual_filter=part)
        targets = self._targets(part)
        if not attribute.derived:
            return Plan(reduce(or_, (self._linking(attribute, target).bits() for target in targets), 0))
        other = part.target.attributes[attribute.mapped_by or ""]
        if (
            other.morph or not attribute.to_many
        ):  # A to-one relation resolves to only one of several referring documents, so a set is not enough.
            return Plan(residual_filter=part)
        at = part.target.position[other.name]
        return Plan(self.by_ids({i for t in targets for i in self._pointing_at(t, at)}))

    def _linking(self, attribute: Attribute, target: Document) -> Order:
        linking, document_id = self.view.snapshot.linking, target.row[DOCUMENT_ID]
        order = linking(self.type, attribute.name, document_id, self._own_locale, self._status)
        self.view.budget.spend(1 + len(order))
        return order

    def _pointing_at(self, target: Document, column: int) -> Sequence[str]:
        ids: Sequence[str] = target.row[column]
        self.view.budget.spend(1 + len(ids))
        return ids

    def _targets(self, part: RelatedMatch) -> Iterable[Document]:
        view, target = self.view, part.target
        inside = self.locale if self.type.localized else EVERY_LOCALE
        locales = effective_locales(target, inside, view.settings.locales)
        targets = [d for locale in locales for d in Planner(view, target, locale).find(part.inner)]
        if len(locales) == 1 or part.attribute.derived:
            return targets
        return [d for d in targets if view.version(target, d.document_id, inside) is d]

    def find(self, filter_: Filter) -> Iterable[Document]:
        plan = self.plan(filter_)
        candidates = self.documents(plan.bits)
        if plan.residual_filter is None:
            return candidates
        return passing(self.view, plan.residual_filter, candidates)

    def documents(self, bits: int | None) -> Iterable[Document]:
        if bits is None:
            return self.order
        self._spend_on_sets(1)
        if bits.bit_count() <= MAX_TESTED_CANDIDATES:
            return self.view.snapshot.members(self.type, self._own_locale, self._status, bits)
        return self.order.members(bits)
