"""Conversions of values for the `retype` migration.

A conversion is exact if it can be reversed.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from server.documents.readers import READERS, InvalidValue
from server.formats.edits import REMOVE
from server.formats.tree import Tree, is_null
from server.schema.model import Attribute

TEXT = ("string", "text", "richtext", "uid", "email", "enumeration")
NUMBER = ("integer", "biginteger", "float", "decimal")
MOMENT = ("datetime", "timestamp")
# returns None if the value can't be converted
Convert = Callable[[Any, Attribute], Any]
_CANONICAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


@dataclass(frozen=True, slots=True)
class ConversionResult:
    """The result of converting a value.

    `tree` is the new value. If `is_unchanged` is set, the value in the file does not have to change.
    `is_exact` is False if information is lost.
    """

    tree: Any = None
    is_unchanged: bool = False
    is_exact: bool = True


def _read(value: Any, new: Attribute) -> Any:
    try:
        return READERS[new.type](value, new)
    except InvalidValue:
        return None


def _same(value: Any, _: Attribute) -> Any:
    return value


def _write(value: Any, _: Attribute) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return format(value, "f") if isinstance(value, Decimal) else str(value)


def _number(value: Any, new: Attribute) -> Any:
    return _read(format(value, "f") if isinstance(value, Decimal) else str(value), new)


def _truth(value: Any, _: Attribute) -> Any:
    return {0: False, 1: True}.get(value)


def _json(value: Any, _: Attribute) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _from_json(kinds: tuple[type, ...]) -> Convert:
    def convert(value: Any, new: Attribute) -> Any:
        is_kind = isinstance(value, kinds) and (bool in kinds or not isinstance(value, bool))
        return _read(str(value) if isinstance(value, float) else value, new) if is_kind else None

    return convert


def _only_item(value: Any, new: Attribute) -> Any:
    return _read(value[0], new) if len(value) == 1 and isinstance(value[0], str) else None


# All other pairs of types need a script.
_ROWS: tuple[tuple[tuple[str, ...], tuple[str, ...], Convert], ...] = (
    (TEXT, TEXT, _read),
    (TEXT, (*NUMBER, *MOMENT, "date", "time", "boolean"), _read),
    (TEXT, ("json",), _same),
    (TEXT, ("array",), lambda value, _: [value]),
    (NUMBER, TEXT, _write),
    (NUMBER, NUMBER, _number),
    (NUMBER, ("boolean",), _truth),
    (NUMBER, ("json",), _json),
    (("boolean",), TEXT, _write),
    (("boolean",), NUMBER, lambda value, _: int(value)),
    (("boolean", "array", "blocks", "date", "time", *MOMENT), ("json",), _same),
    (("date", "time", *MOMENT), TEXT, _same),
    (("date", *MOMENT), ("date", *MOMENT), _read),
    (("array",), TEXT, _only_item),
    (("json",), TEXT, _from_json((str,))),
    (("json",), NUMBER, _from_json((int, float))),
    (("json",), ("boolean",), _from_json((bool,))),
    (("json",), ("array", "blocks"), _from_json((list,))),
    (("json",), ("date", "time", *MOMENT), _from_json((str,))),
)
CONVERSIONS: Mapping[tuple[str, str], Convert] = {
    (old, new): convert for olds, news, convert in reversed(_ROWS) for old in olds for new in news
}


def convert_tree(tree: Tree, old: Attribute, new: Attribute) -> ConversionResult | None:
    """Convert a value of the attribute `old` to the type of `new`, or return None if this is impossible.

    A value that means the same in both types stays unchanged. Raises InvalidValue if the value is invalid for
    `old`.
    """
    if is_null(tree):
        return ConversionResult(is_unchanged=True)
    value = READERS[old.type](tree, old)
    as_it_is = _read(tree, new)
    if as_it_is is not None and _is_same(_convert(as_it_is, new, old), value, new):
        return ConversionResult(is_unchanged=True)
    converted = _convert(value, old, new)
    if converted is None or (new.type == "enumeration" and converted not in new.enum):
        return None
    return ConversionResult(converted, is_exact=_is_same(_convert(converted, new, old), value, new))


def _convert(value: Any, old: Attribute, new: Attribute) -> Any:
    convert = CONVERSIONS.get((old.type, new.type), _read if old.type == new.type else None)
    return convert(value, new) if convert else None


def _is_same(back: Any, value: Any, new: Attribute) -> bool:
    # Numbers are the same if they differ only in trailing zeros.
    if new.type in NUMBER and isinstance(value, str) and isinstance(back, str):
        return bool(_CANONICAL.fullmatch(value.strip())) and Decimal(value.strip()) == Decimal(back)
    return type(back) is type(value) and bool(back == value)


# --- relations and media --------------------------------------------------------------------------


def list_to_item(tree: Tree) -> ConversionResult:
    if not isinstance(tree, list):
        return ConversionResult(is_unchanged=True)
    items = [item for item in tree if not is_null(item)]
    return ConversionResult(items[0] if items else REMOVE, is_exact=len(items) <= 1)


def item_to_list(tree: Tree) -> ConversionResult:
    return (
        ConversionResult(is_unchanged=True)
        if isinstance(tree, list) or is_null(tree)
        else ConversionResult([tree])
    )
