"""Filter operators. As in SQL, null matches only `$null` and `$notNull`."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal

OperandKind = Literal["value", "list", "pair", "text", "flag"]
Predicate = Callable[[Any, Any], bool]


@dataclass(frozen=True, slots=True)
class Operator:
    """A filter operator. `predicate` is called with a document's value and the operand."""

    name: str
    operand_kind: OperandKind
    description: str
    predicate: Predicate
    ignores_case: bool = False


def text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return format(value, "f")
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_null(value: Any, expected: bool) -> bool:
    return (value is None) == expected


def _is_not_null(value: Any, expected: bool) -> bool:
    return (value is not None) == expected


OPERATORS: Mapping[str, Operator] = {
    row.name: row
    for row in (
        Operator("$eq", "value", "is equal to", lambda a, b: a == b),
        Operator("$eqi", "text", "is equal to, ignoring case", lambda a, b: a == b, ignores_case=True),
        Operator("$ne", "value", "is not equal to", lambda a, b: a != b),
        Operator("$nei", "text", "is not equal to, ignoring case", lambda a, b: a != b, ignores_case=True),
        Operator("$lt", "value", "is less than", lambda a, b: a < b),
        Operator("$lte", "value", "is less than or equal to", lambda a, b: a <= b),
        Operator("$gt", "value", "is greater than", lambda a, b: a > b),
        Operator("$gte", "value", "is greater than or equal to", lambda a, b: a >= b),
        Operator("$in", "list", "is one of", lambda a, b: a in b),
        Operator("$notIn", "list", "is none of", lambda a, b: a not in b),
        Operator(
            "$between", "pair", "lies between two values, both included", lambda a, b: b[0] <= a <= b[1]
        ),
        Operator("$contains", "text", "contains", lambda a, b: b in a),
        Operator("$containsi", "text", "contains, ignoring case", lambda a, b: b in a, ignores_case=True),
        Operator("$notContains", "text", "does not contain", lambda a, b: b not in a),
        Operator(
            "$notContainsi",
            "text",
            "does not contain, ignoring case",
            lambda a, b: b not in a,
            ignores_case=True,
        ),
        Operator("$startsWith", "text", "begins with", lambda a, b: a.startswith(b)),
        Operator(
            "$startsWithi",
            "text",
            "begins with, ignoring case",
            lambda a, b: a.startswith(b),
            ignores_case=True,
        ),
        Operator("$endsWith", "text", "ends with", lambda a, b: a.endswith(b)),
        Operator(
            "$endsWithi", "text", "ends with, ignoring case", lambda a, b: a.endswith(b), ignores_case=True
        ),
        Operator("$null", "flag", "has no value (`true`), or has one (`false`)", _is_null),
        Operator("$notNull", "flag", "has a value (`true`), or has none (`false`)", _is_not_null),
    )
}

LOGIC: Mapping[str, str] = {
    "$and": "all of a list of conditions hold",
    "$or": "one of a list of conditions holds",
    "$not": "a condition does not hold",
}
