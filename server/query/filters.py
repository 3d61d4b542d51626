"""The `filters` parameter → Filter, in negation normal form.

`$not` is pushed down to the comparisons below it, so that what remains are comparisons, "and" and
"or": that is how SQL's three-valued logic over joined rows comes out, which clients are used to
(`$not[tags][name]=red` finds what has a tag that is not red).
"""

import re
from dataclasses import dataclass, field
from typing import Any

from server.documents.ids import compose
from server.documents.readers import READERS, Unreadable
from server.documents.timestamps import read_partial_timestamp, read_timestamp
from server.errors import ValidationError, invalid_key
from server.query import qs
from server.query.ast import NO_FILTER, And, Compare, Filter, Missing, Or, Through
from server.query.operators import LOGIC, OPERATORS, text_of
from server.query.qs import Mistakes, read_boolean
from server.query.queryable_attributes import AttributePath, find_attribute, target_of
from server.schema.model import UPLOAD, Attribute, Schema, Type

_DIGITS = re.compile(r"[0-9]{1,18}")


def read_filters(schema: Schema, type_: Type, value: Any, param: str = "filters") -> Filter:
    """The filter that a parameter describes; NO_FILTER where it is empty. Raises ValidationError."""
    if value is None or value == "":
        return NO_FILTER
    if not isinstance(value, dict | list):
        raise ValidationError("The filters parameter must be an object or an array")
    parser = _FilterParser(schema, param)
    filter_ = parser.group(type_, value, (), False)
    parser.mistakes.report()
    return filter_


@dataclass(frozen=True, slots=True)
class _FilterParser:
    """Reads one parameter; `negated` says whether an odd number of `$not` stands above."""

    schema: Schema
    param: str
    mistakes: Mistakes = field(default_factory=Mistakes)

    def group(self, type_: Type, value: Any, path: AttributePath, negated: bool) -> Filter:
        """An object (its keys and-ed), or a list of objects (and-ed too)."""
        if qs.is_list(value):
            return _and([self.group(type_, item, path, negated) for item in qs.items(value)], negated)
        if isinstance(value, dict):
            return _and([self.key(type_, k, item, path, negated) for k, item in value.items()], negated)
        self.mistakes.hold(invalid_key(str(value), ".".join(path) or None, self.param))
        return NO_FILTER

    def key(self, type_: Type, key: str, value: Any, path: AttributePath, negated: bool) -> Filter:
        """One key of an object: logic, or an attribute."""
        if key == "$not":
            return self.group(type_, value, path, not negated)
        if key in LOGIC:
            parts = [self.group(type_, v, path, negated) for v in _conditions(value, key)]
            return _and(parts, negated != (key == "$or"))
        if key in OPERATORS:  # without an attribute before it
            self.mistakes.hold(invalid_key(key, ".".join(path) or None, self.param))
            return NO_FILTER
        attribute = find_attribute(type_, key, path, self.param)
        if key == "documentId" or type_.uid == UPLOAD:
            value = _compose(value)
        if attribute.scalar:
            return self.scalar(type_.position[key], attribute, value, (*path, key), negated)
        return self.beyond(type_.position[key], attribute, value, (*path, key), negated)

    def scalar(self, at: int, attribute: Attribute, value: Any, path: AttributePath, negated: bool) -> Filter:
        """Parse the right-hand side of a scalar filter: one value, a list, or a mapping of operators."""
        if qs.is_list(value):
            items = qs.items(value)
            if len(items) == 1 and isinstance(items[0], dict):
                return self.scalar(at, attribute, items[0], path, negated)
            return self.compare(attribute, at, "$in", value, path, negated)
        if not isinstance(value, dict):
            return self.compare(attribute, at, "$eq", value, path, negated)
        return _and([self.operator(at, attribute, k, v, path, negated) for k, v in value.items()], negated)

    def operator(
        self, at: int, attribute: Attribute, key: str, value: Any, path: AttributePath, negated: bool
    ) -> Filter:
        """One operator of a scalar attribute, or logic inside of it."""
        if key == "$not":
            return self.scalar(at, attribute, value, path, not negated)
        if key in LOGIC:
            parts = [self.scalar(at, attribute, v, path, negated) for v in _conditions(value, key)]
            return _and(parts, negated != (key == "$or"))
        if key not in OPERATORS:
            # Ids are no attributes of a type, so that the path ends before them.
            named = path[:-1] if attribute.name in ("id", "documentId") else path
            raise invalid_key(key, ".".join(named) or None, self.param)
        return self.compare(attribute, at, key, value, path, negated)

    def compare(
        self, attribute: Attribute, at: int, name: str, value: Any, path: AttributePath, negated: bool
    ) -> Filter:
        """One comparison; a value that it can't have is reported when all keys are read."""
        with self.mistakes:
            return _compare(attribute, at, name, value, path, negated)
        return NO_FILTER

    def beyond(self, at: int, attribute: Attribute, value: Any, path: AttributePath, negated: bool) -> Filter:
        """A filter on what a relation, media or component attribute holds."""
        target = target_of(self.schema, attribute)
        if target is None:
            raise invalid_key(attribute.name, ".".join(path), self.param)
        dotted = ".".join(path)
        parts: list[Filter] = []
        rest: dict[str, Any] = {}
        for key, item in _as_object(value).items():
            if key == "$not" and not _conditional(item):
                key = "$ne"
            if key not in OPERATORS:
                rest[key] = item
                continue
            with self.mistakes:
                if key in ("$null", "$notNull"):
                    null = _flag(item, key, dotted) == (key == "$null")
                    parts.append(Missing(attribute, at, dotted, target, null != negated))
                else:
                    inner = _identity(target, key, item, path, negated)
                    parts.append(Through(attribute, at, target, inner, dotted))
        if rest:
            inner = self.group(target, rest, path, negated)
            parts.append(Through(attribute, at, target, inner, dotted))
        return _and(parts, negated)


def _as_object(value: Any) -> dict[str, Any]:
    """`filters[author]=…` in any form as an object of operators and keys."""
    if qs.is_list(value):
        items = qs.items(value)
        return {"$and": items} if any(isinstance(item, dict) for item in items) else {"$in": items}
    if isinstance(value, dict):
        return value
    return {"$null": "true"} if value is None else {"$eq": value}


def _compose(value: Any) -> Any:
    """Names of documents and files in a value as the index has them."""
    if isinstance(value, dict):
        return {key: _compose(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_compose(item) for item in value]
    return compose(value) if isinstance(value, str) else value


def _identity(target: Type, operator: str, value: Any, path: AttributePath, negated: bool) -> Filter:
    """A relation compared with a value: by documentId; where that is digits, by the number as well."""
    value = _compose(value)
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
    return _and(parts, negated == none_of)


def _conditional(value: Any) -> bool:
    """Whether a value has conditions in it, rather than what is compared."""
    items = qs.items(value) if qs.is_list(value) else [value]
    return any(isinstance(item, dict) for item in items)


def _conditions(value: Any, key: str) -> list[Any]:
    if qs.is_list(value):
        return qs.items(value)
    if isinstance(value, dict):
        return [value]
    details = {"key": key, "source": "query", "param": "filters"}
    raise ValidationError(f"{key} takes a list of conditions", details)


def _and(parts: list[Filter], negated: bool) -> Filter:
    """All of the parts; negated, by De Morgan, one of them (each part is negated already)."""
    if len(parts) == 1:
        return parts[0]
    return Or(tuple(parts)) if negated else And(tuple(parts))


def _compare(
    attribute: Attribute, at: int, name: str, value: Any, path: AttributePath, negated: bool
) -> Filter:
    operator, dotted = OPERATORS[name], ".".join(path)
    if operator.takes == "flag":
        return Compare(attribute, at, operator, _flag(value, name, dotted), negated)
    values = qs.items(value) if qs.is_list(value) else [value]
    if operator.takes == "list":
        return Compare(attribute, at, operator, [_cast(attribute, v, dotted) for v in values], negated)
    if operator.takes == "pair":
        if len(values) != 2:
            raise _bad_value(value, dotted, "two values")
        return Compare(attribute, at, operator, tuple(_cast(attribute, v, dotted) for v in values), negated)
    if len(values) != 1:
        return _compare_many(attribute, at, name, values, path, negated)
    if values[0] is None and name in ("$eq", "$ne"):
        return Compare(attribute, at, OPERATORS["$null"], name == "$eq", negated)
    if operator.takes == "text":
        text = _text(values[0], dotted)
        return Compare(attribute, at, operator, text.casefold() if operator.folds else text, negated)
    return Compare(attribute, at, operator, _cast(attribute, values[0], dotted), negated)


def _compare_many(
    attribute: Attribute, at: int, name: str, values: list[Any], path: AttributePath, negated: bool
) -> Filter:
    """`$eq` and `$ne` with a list mean `$in` and `$notIn`; other operators take one value."""
    wide = {"$eq": "$in", "$ne": "$notIn"}.get(name)
    if wide is None:
        raise _bad_value(values, ".".join(path), f"one value for {name}")
    return _compare(attribute, at, wide, values, path, negated)


def _cast(attribute: Attribute, value: Any, dotted: str) -> Any:
    """An operand as the attribute's type holds it, so that comparing needs no conversion."""
    text = _text(value, dotted)
    if attribute.type in ("json", "array", "blocks") or attribute.group == "string":
        return text
    if attribute.type == "boolean" and (boolean := read_boolean(text.lower())) is not None:
        return boolean
    try:
        if attribute.type in ("datetime", "timestamp"):
            return _timestamp(text)
        return READERS[attribute.type](text, attribute)
    except Unreadable as error:
        if attribute.type == "date":
            try:
                return read_timestamp(text)[:10]  # epoch milliseconds, as some clients send them
            except ValueError:
                pass
        raise _bad_value(value, dotted, error.expected) from error


def _timestamp(text: str) -> str:
    try:
        return read_partial_timestamp(text)
    except ValueError as error:
        raise Unreadable("a timestamp such as 2024-02-29T10:20:30Z, or the beginning of one") from error


def _bad_value(value: Any, dotted: str, expected: str) -> ValidationError:
    shown = (value if isinstance(value, str) else text_of(value))[:100]
    details = {"key": dotted, "value": shown, "source": "query", "param": "filters"}
    return ValidationError(f'Invalid value "{shown}" at {dotted}: expected {expected}', details)


def _text(value: Any, dotted: str) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ValidationError(f"Invalid value at {dotted}: one value is expected")
    return value


def _flag(value: Any, name: str, dotted: str) -> bool:
    flag = read_boolean(value.lower() if isinstance(value, str) else value)
    if flag is None:
        raise _bad_value(value, dotted, f"true or false for {name}")
    return flag
