"""Parser for `filters`.

`$not` negates the comparisons inside it: `$not[tags][name]=red` matches documents with at least one tag that
is not red.
"""

import re
from dataclasses import dataclass, field
from typing import Any

from server.documents.ids import to_nfc
from server.documents.readers import READERS, InvalidValue
from server.documents.timestamps import read_partial_timestamp, read_timestamp
from server.errors import SUGGESTION, ValidationError, invalid_key
from server.query import qs
from server.query.ast import NO_FILTER, And, Compare, EmptyAttribute, Filter, Or, RelatedMatch
from server.query.operators import LOGIC, OPERATORS, text_of
from server.query.qs import DeferredErrors, read_boolean
from server.query.queryable_attributes import AttributePath, find_attribute, target_of
from server.schema.model import UPLOAD, Attribute, Schema, Type
from server.schema.spelling import Suggestions

_MAX_NAME_CHARS = 100
_MIN_SIMILARITY = 0.8  # names of operators are short: $like is not $lte
_DIGITS = re.compile(r"[0-9]{1,18}")


def read_filters(schema: Schema, type_: Type, value: Any, param: str = "filters") -> Filter:
    """Parse filters. Raises ValidationError if they are invalid.

    `param` is the parameter's name for error messages.
    """
    if value is None or value == "":
        return NO_FILTER
    if not isinstance(value, dict | list):
        raise ValidationError("The filters parameter must be an object or an array")
    parser = _FilterParser(schema, param)
    filter_ = parser.group(type_, value, (), False)
    parser.deferred_errors.raise_first()
    return filter_


@dataclass(frozen=True, slots=True)
class _FilterParser:
    """Parser for the filters in one query parameter.

    In its methods, `negated` is True inside an odd number of nested `$not` operators.
    """

    schema: Schema
    param: str
    deferred_errors: DeferredErrors = field(default_factory=DeferredErrors)

    def group(self, type_: Type, value: Any, path: AttributePath, negated: bool) -> Filter:
        if qs.is_list(value):
            return _combine([self.group(type_, item, path, negated) for item in qs.items(value)], negated)
        if isinstance(value, dict):
            return _combine([self.key(type_, k, item, path, negated) for k, item in value.items()], negated)
        self.deferred_errors.add(invalid_key(str(value), ".".join(path) or None, self.param))
        return NO_FILTER

    def key(self, type_: Type, key: str, value: Any, path: AttributePath, negated: bool) -> Filter:
        if key == "$not":
            return self.group(type_, value, path, not negated)
        if key in LOGIC:
            parts = [self.group(type_, v, path, negated) for v in _conditions(value, key)]
            return _combine(parts, negated != (key == "$or"))
        if key in OPERATORS:  # The operator is not inside an attribute.
            self.deferred_errors.add(invalid_key(key, ".".join(path) or None, self.param))
            return NO_FILTER
        attribute = find_attribute(type_, key, path, self.param)
        if key == "documentId" or type_.uid == UPLOAD:
            value = _compose_names(value)
        if attribute.scalar:
            return self.scalar(type_.position[key], attribute, value, (*path, key), negated)
        return self.filter_related(type_.position[key], attribute, value, (*path, key), negated)

    def scalar(
        self, column: int, attribute: Attribute, value: Any, path: AttributePath, negated: bool
    ) -> Filter:
        if qs.is_list(value):
            items = qs.items(value)
            if len(items) == 1 and isinstance(items[0], dict):
                return self.scalar(column, attribute, items[0], path, negated)
            return self.compare(attribute, column, "$in", value, path, negated)
        if not isinstance(value, dict):
            return self.compare(attribute, column, "$eq", value, path, negated)
        return _combine(
            [self.operator(column, attribute, k, v, path, negated) for k, v in value.items()], negated
        )

    def operator(
        self, column: int, attribute: Attribute, key: str, value: Any, path: AttributePath, negated: bool
    ) -> Filter:
        if key == "$not":
            return self.scalar(column, attribute, value, path, not negated)
        if key in LOGIC:
            parts = [self.scalar(column, attribute, v, path, negated) for v in _conditions(value, key)]
            return _combine(parts, negated != (key == "$or"))
        if key not in OPERATORS:
            # `id` and `documentId` are not attributes, so they are not part of the path in the error.
            named = path[:-1] if attribute.name in ("id", "documentId") else path
            error = invalid_key(key, ".".join(named) or None, self.param)
            operator = f"${key[:_MAX_NAME_CHARS].lstrip('$')}"  # The $ is often forgotten.
            if near := Suggestions().nearest(operator, OPERATORS, _MIN_SIMILARITY):
                error.details[SUGGESTION] = near
            raise error
        return self.compare(attribute, column, key, value, path, negated)

    def compare(
        self, attribute: Attribute, column: int, name: str, value: Any, path: AttributePath, negated: bool
    ) -> Filter:
        # Errors about keys take priority, so an error about the operand is deferred.
        with self.deferred_errors:
            return _compare(attribute, column, name, value, path, negated)
        return NO_FILTER

    def filter_related(
        self, column: int, attribute: Attribute, value: Any, path: AttributePath, negated: bool
    ) -> Filter:
        target = target_of(self.schema, attribute)
        if target is None:
            raise invalid_key(attribute.name, ".".join(path), self.param)
        dotted = ".".join(path)
        parts: list[Filter] = []
        rest: dict[str, Any] = {}
        for key, item in _as_object(value).items():
            if key == "$not" and not _has_conditions(item):
                key = "$ne"
            if key not in OPERATORS:
                rest[key] = item
                continue
            with self.deferred_errors:
                if key in ("$null", "$notNull"):
                    null = _flag(item, key, dotted) == (key == "$null")
                    parts.append(EmptyAttribute(attribute, column, dotted, target, null != negated))
                else:
                    inner = _compare_ids(target, key, item, path, negated)
                    parts.append(RelatedMatch(attribute, column, target, inner, dotted))
        if rest:
            inner = self.group(target, rest, path, negated)
            parts.append(RelatedMatch(attribute, column, target, inner, dotted))
        return _combine(parts, negated)


def _as_object(value: Any) -> dict[str, Any]:
    """Convert the value of a filter to an object with operators, such as `abc` to `{"$eq": "abc"}`."""
    if qs.is_list(value):
        items = qs.items(value)
        return {"$and": items} if any(isinstance(item, dict) for item in items) else {"$in": items}
    if isinstance(value, dict):
        return value
    return {"$null": "true"} if value is None else {"$eq": value}


def _compose_names(value: Any) -> Any:
    # Convert text to the Unicode form NFC, because ids and file names in the index have this form.
    if isinstance(value, dict):
        return {key: _compose_names(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_compose_names(item) for item in value]
    return to_nfc(value) if isinstance(value, str) else value


def _compare_ids(target: Type, operator: str, value: Any, path: AttributePath, negated: bool) -> Filter:
    """Parse a filter that compares the ids of related items with `value`.

    A value that consists of digits can be an `id` or a documentId, so it is compared with both.
    """
    value = _compose_names(value)
    values = qs.items(value) if qs.is_list(value) else [value]
    digits = all(isinstance(v, str) and _DIGITS.fullmatch(v) for v in values)
    one_of, none_of = operator in ("$eq", "$eqi", "$in"), operator in ("$ne", "$nei", "$notIn")
    names = ["id"] if digits or target.kind == "component" else ["documentId"]
    if digits and (one_of or none_of) and target.kind != "component":
        names.append("documentId")
    parts = [
        _compare(target.columns[name], target.position[name], operator, value, path, negated)
        for name in names
    ]
    return _combine(parts, negated == none_of)


def _has_conditions(value: Any) -> bool:
    items = qs.items(value) if qs.is_list(value) else [value]
    return any(isinstance(item, dict) for item in items)


def _conditions(value: Any, key: str) -> list[Any]:
    if qs.is_list(value):
        return qs.items(value)
    if isinstance(value, dict):
        return [value]
    details = {"key": key, "source": "query", "param": "filters"}
    raise ValidationError(f'"{key}" must be a list of conditions', details)


def _combine(parts: list[Filter], negated: bool) -> Filter:
    # If `negated` is set, each filter is already negated, so "and" becomes "or" (De Morgan).
    if len(parts) == 1:
        return parts[0]
    return Or(tuple(parts)) if negated else And(tuple(parts))


def _compare(
    attribute: Attribute, column: int, name: str, value: Any, path: AttributePath, negated: bool
) -> Filter:
    operator, dotted = OPERATORS[name], ".".join(path)
    if operator.operand_kind == "flag":
        return Compare(attribute, column, operator, _flag(value, name, dotted), negated)
    values = qs.items(value) if qs.is_list(value) else [value]
    if operator.operand_kind == "list":
        return Compare(
            attribute, column, operator, [_convert_operand(attribute, v, dotted) for v in values], negated
        )
    if operator.operand_kind == "pair":
        if len(values) != 2:
            raise _bad_value(value, dotted, "two values")
        return Compare(
            attribute,
            column,
            operator,
            tuple(_convert_operand(attribute, v, dotted) for v in values),
            negated,
        )
    if len(values) != 1:
        return _compare_many(attribute, column, name, values, path, negated)
    if values[0] is None and name in ("$eq", "$ne"):
        return Compare(attribute, column, OPERATORS["$null"], name == "$eq", negated)
    if operator.operand_kind == "text":
        text = _text(values[0], dotted)
        return Compare(
            attribute, column, operator, text.casefold() if operator.ignores_case else text, negated
        )
    return Compare(attribute, column, operator, _convert_operand(attribute, values[0], dotted), negated)


def _compare_many(
    attribute: Attribute, column: int, name: str, values: list[Any], path: AttributePath, negated: bool
) -> Filter:
    """Parse a comparison with several values: `$eq` becomes `$in`, and `$ne` becomes `$notIn`.

    Raises ValidationError for all other operators.
    """
    list_operator = {"$eq": "$in", "$ne": "$notIn"}.get(name)
    if list_operator is None:
        raise _bad_value(values, ".".join(path), f"one value for {name}")
    return _compare(attribute, column, list_operator, values, path, negated)


def _convert_operand(attribute: Attribute, value: Any, dotted: str) -> Any:
    text = _text(value, dotted)
    if attribute.type in ("json", "array", "blocks") or attribute.group == "string":
        return text
    if attribute.type == "boolean" and (boolean := read_boolean(text.lower())) is not None:
        return boolean
    try:
        if attribute.type in ("datetime", "timestamp"):
            return _timestamp(text)
        return READERS[attribute.type](text, attribute)
    except InvalidValue as error:
        if attribute.type == "date":
            try:
                return read_timestamp(text)[:10]  # Some clients send dates as epoch milliseconds.
            except ValueError:
                pass
        raise _bad_value(value, dotted, error.expected) from error


def _timestamp(text: str) -> str:
    try:
        return read_partial_timestamp(text)
    except ValueError as error:
        raise InvalidValue("a timestamp such as 2024-02-29T10:20:30Z, or the beginning of one") from error


def _bad_value(value: Any, dotted: str, expected: str) -> ValidationError:
    shown = (value if isinstance(value, str) else text_of(value))[:100]
    details = {"key": dotted, "value": shown, "source": "query", "param": "filters"}
    return ValidationError(f'Invalid value "{shown}" at {dotted}: expected {expected}', details)


def _text(value: Any, dotted: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValidationError(f"Invalid value at {dotted}: expected a single value")
    return value


def _flag(value: Any, name: str, dotted: str) -> bool:
    flag = read_boolean(value.lower() if isinstance(value, str) else value)
    if flag is None:
        raise _bad_value(value, dotted, f"true or false for {name}")
    return flag
