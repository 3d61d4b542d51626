"""The `sort` parameter: `a:desc,b`, a list of such, or `{a: desc, b: {c: asc}}`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from typing import Any

from server.errors import KeyNameError, ValidationError, invalid_key
from server.query import qs
from server.query.ast import And, Filter, Missing, Or, Query, Selection, Sort, Step, Through
from server.schema.model import UPLOAD, USER, Attribute, Schema, Type

# --- schema lookup --------------------------------------------------------------------------------

# --- fields ---------------------------------------------------------------------------------------

# Keys of a query that lead from the type asked for to an attribute.
AttributePath = tuple[str, ...]


def find_attribute(type_: Type, key: str, path: AttributePath, param: str) -> Attribute:
    """The attribute that a filter or sort names; private ones, passwords and zones are refused."""
    attribute = type_.columns.get(key)
    if attribute is None:
        raise invalid_key(key, ".".join(path) or None, param)
    if not attribute.queryable:
        raise invalid_key(key, ".".join((*path, key)), param)
    return attribute


def target_of(schema: Schema, attribute: Attribute) -> Type | None:
    """The type that an attribute leads to, where there is one and only one."""
    if attribute.type == "media":
        return schema.types[UPLOAD]
    if attribute.type == "dynamiczone" or attribute.polymorphic:
        return None
    uid = attribute.component if attribute.type == "component" else attribute.target
    return schema.types.get(uid or "")


def targets_of(schema: Schema, attribute: Attribute) -> list[Type]:
    """Every type of which an attribute may hold something; none for types that are not here."""
    if attribute.type == "dynamiczone":
        return [schema.types[uid] for uid in attribute.components]
    if attribute.polymorphic and attribute.derived:
        return [t for t in schema.content_types if any(a.type == "media" for a in t.attributes.values())]
    if attribute.polymorphic:
        return [*schema.content_types, schema.types[UPLOAD], schema.types[USER]]
    target = target_of(schema, attribute)
    return [target] if target else []


# --- mentions -------------------------------------------------------------------------------------


def mentions(query: Query, uids: Set[str]) -> bool:
    """Whether a query is about documents of one of some types."""
    return any(uid in uids for uid in mentioned_types(query))


def mentioned_types(query: Query) -> Iterator[str]:
    """The uids of all types that a query is about, components too; some more than once."""
    yield query.type.uid
    yield from _types_in_selection(query.selection)


def conditions(selection: Selection) -> Iterator[str]:
    """The uids of the types through which a selection filters or sorts."""
    yield from _types_in_filter(selection.filter)
    for key in selection.sort:
        for step in key.steps:
            yield step.target.uid


def _types_in_selection(selection: Selection) -> Iterator[str]:
    yield from conditions(selection)
    for node in selection.populate:
        for uid, inner in node.selections.items():
            yield uid
            yield from _types_in_selection(inner)


def _types_in_filter(filter_: Filter) -> Iterator[str]:
    if isinstance(filter_, And | Or):
        for part in filter_.parts:
            yield from _types_in_filter(part)
    elif isinstance(filter_, Missing):
        if filter_.target is not None:
            yield filter_.target.uid
    elif isinstance(filter_, Through):
        yield filter_.target.uid
        yield from _types_in_filter(filter_.inner)


# --- sorting --------------------------------------------------------------------------------------

ORDERS = ("asc", "desc", "ASC", "DESC")


def read_sort(schema: Schema, type_: Type, value: Any, param: str = "sort") -> tuple[Sort, ...]:
    """The sort keys of any form of the parameter. Raises ValidationError, also for too many."""
    keys = _read(schema, type_, value, param)
    # A key that is repeated decides nothing, and there may be thousands.
    different = {(*(step.at for step in key.steps), key.at, key.descending): key for key in keys}
    if len(different) > qs.SORT_KEYS:
        raise ValidationError(f"{len(different)} sort keys are asked for; at most {qs.SORT_KEYS} are read")
    return tuple(different.values())


def _read(schema: Schema, type_: Type, value: Any, param: str) -> tuple[Sort, ...]:
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        parts = (part for part in value.split(",") if part.partition(":")[0].strip())
        return _each(lambda part: (_text(schema, type_, part, param),), parts)
    if qs.is_list(value):
        if len({isinstance(item, str) for item in qs.items(value)}) > 1:
            raise invalid_key("0", None, param)  # Texts and objects in one list are an object with numbers.
        return _each(lambda item: _read(schema, type_, item, param), qs.items(value))
    if isinstance(value, dict):
        return tuple(_object(schema, type_, value, (), param))
    raise ValidationError("The sort parameter must be text, a list or an object")


def _each(read: Callable[[Any], tuple[Sort, ...]], items: Iterable[Any]) -> tuple[Sort, ...]:
    """The sort keys of several items. Of several mistakes, the least deep is reported, then the first."""
    keys: list[Sort] = []
    mistakes: list[ValidationError] = []
    for item in items:
        try:
            keys += read(item)
        except ValidationError as error:
            mistakes.append(error)
    if mistakes:
        raise min(mistakes, key=_depth)
    return tuple(keys)


def _depth(error: ValidationError) -> int:
    """How deep below the type asked for a mistake is; what names no key is reported after all that do."""
    if not isinstance(error, KeyNameError):
        return qs.DEPTH + 1
    path = error.details["path"]
    return len(path.split(".")) if path else 0


def _text(schema: Schema, type_: Type, text: str, param: str) -> Sort:
    names, _, order = text.strip().partition(":")
    return _key(schema, type_, tuple(names.strip().split(".")), order.strip() or "asc", param)


def _object(
    schema: Schema, type_: Type, value: Mapping[str, Any], path: AttributePath, param: str
) -> Iterator[Sort]:
    for key, item in value.items():
        inner = (*path, *key.split("."))
        if qs.is_list(item):
            _key(schema, type_, inner, "asc", param)  # A list is no order, and decides nothing.
        elif isinstance(item, dict):
            yield from _object(schema, type_, item, inner, param)
        else:
            yield _key(schema, type_, inner, str(item or "asc"), param)


def _key(schema: Schema, type_: Type, path: AttributePath, order: str, param: str) -> Sort:
    if len(path) > qs.DEPTH:
        raise ValidationError(f"A sort key leads {len(path)} levels deep; at most {qs.DEPTH} levels are read")
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
        raise invalid_key(path[-1], ".".join(path), param)
    if order not in ORDERS:
        raise ValidationError(f"Invalid order. order can only be one of {'|'.join(ORDERS)}")
    return Sort(tuple(steps), attribute, type_.position[path[-1]], order.lower() == "desc")
