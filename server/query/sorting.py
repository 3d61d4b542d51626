"""Parser for `sort`: `a:desc,b`, a list, or an object like `{"a": "desc"}`."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from server.errors import KeyNameError, ValidationError, invalid_key
from server.query import qs
from server.query.ast import Sort, Step
from server.query.brackets import MAX_DEPTH
from server.query.queryable_attributes import AttributePath, find_attribute, target_of
from server.schema.model import Attribute, Schema, Type

ORDERS = ("asc", "desc", "ASC", "DESC")


def read_sort(schema: Schema, type_: Type, value: Any, param: str = "sort") -> tuple[Sort, ...]:
    """Parse the `sort` parameter. Raises ValidationError if a sort key is invalid."""
    keys = _read(schema, type_, value, param)
    # Drop duplicates, because a request could repeat the same key thousands of times.
    distinct = {
        (*(step.column_index for step in key.steps), key.column_index, key.descending): key for key in keys
    }
    if len(distinct) > qs.MAX_SORT_KEYS:
        raise ValidationError(f"The query has {len(distinct)} sort keys; the limit is {qs.MAX_SORT_KEYS}")
    return tuple(distinct.values())


def _read(schema: Schema, type_: Type, value: Any, param: str) -> tuple[Sort, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        parts = (part for part in value.split(",") if part.partition(":")[0].strip())
        return _parse_each(lambda part: (_text(schema, type_, part, param),), parts)
    if qs.is_list(value):
        if len({isinstance(item, str) for item in qs.items(value)}) > 1:
            # Strapi interprets a mixed list as an object with numeric keys, so the error is about the key
            # "0".
            raise invalid_key("0", None, param)
        return _parse_each(lambda item: _read(schema, type_, item, param), qs.items(value))
    if isinstance(value, dict):
        return tuple(_object(schema, type_, value, (), param))
    raise ValidationError('The "sort" parameter must be a string, a list or an object')


def _parse_each(read: Callable[[Any], tuple[Sort, ...]], items: Iterable[Any]) -> tuple[Sort, ...]:
    """Parse each item with `read`. If several items are invalid, raise the error with the shortest path."""
    keys: list[Sort] = []
    errors: list[ValidationError] = []
    for item in items:
        try:
            keys += read(item)
        except ValidationError as error:
            errors.append(error)
    if errors:
        raise min(errors, key=_path_length)
    return tuple(keys)


def _path_length(error: ValidationError) -> int:
    """Return the length of a KeyNameError's path, or a greater number for any other error."""
    if not isinstance(error, KeyNameError):
        return MAX_DEPTH + 1
    path = error.details["path"]
    return len(path.split(".")) if path else 0


def _text(schema: Schema, type_: Type, text: str, param: str) -> Sort:
    names, colon, order = text.strip().partition(":")
    return _key(schema, type_, tuple(names.strip().split(".")), order.strip() if colon else None, param)


def _object(
    schema: Schema, type_: Type, value: Mapping[str, Any], path: AttributePath, param: str
) -> Iterator[Sort]:
    for key, item in value.items():
        inner = (*path, *key.split("."))
        if qs.is_list(item):
            # A list is not a valid direction, so the sort key is ignored. Its name must still be valid.
            _key(schema, type_, inner, None, param)
        elif isinstance(item, dict):
            yield from _object(schema, type_, item, inner, param)
        else:
            yield _key(schema, type_, inner, str(item) if item else None, param)


def _key(schema: Schema, type_: Type, path: AttributePath, order: str | None, param: str) -> Sort:
    if len(path) > MAX_DEPTH:
        raise ValidationError(f"A sort key is {len(path)} levels deep; the limit is {MAX_DEPTH} levels")
    steps: list[Step] = []
    for i, key in enumerate(path[:-1]):
        attribute = find_attribute(type_, key, path[:i], param)
        target = None if attribute.scalar else target_of(schema, attribute)
        if target is None:
            raise invalid_key(path[i + 1], ".".join(path[: i + 1]), param)
        steps.append(Step(attribute, type_.position[key], target, ".".join(path[: i + 1])))
        type_ = target
    attribute = find_attribute(type_, path[-1], path[:-1], param)
    if not attribute.scalar:
        raise _no_scalar(schema, attribute, path, order, param)
    order = "asc" if order is None else order
    if order not in ORDERS:
        raise _invalid_order()
    return Sort(tuple(steps), attribute, type_.position[path[-1]], order.lower() == "desc")


def _no_scalar(
    schema: Schema, attribute: Attribute, path: AttributePath, order: str | None, param: str
) -> ValidationError:
    inside = None if attribute.polymorphic else target_of(schema, attribute)
    if order and inside is not None:
        find_attribute(inside, order, path, param)
        return _invalid_order()
    return invalid_key(path[-1], ".".join(path), param)


def _invalid_order() -> ValidationError:
    return ValidationError(f"Invalid order. order can only be one of {'|'.join(ORDERS)}")
