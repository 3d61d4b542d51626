"""Conversion of parsed values to attribute values. For components, see `documents.encode`."""

import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from server.documents.blocks import TEXT_MEMBERS
from server.documents.ids import id_of_reference, to_nfc
from server.documents.timestamps import read_date, read_time, read_timestamp
from server.formats.tree import MAX_DIGITS, Plain, Tree, is_null, resolve_plain_values
from server.schema.model import Attribute
from server.schema.spelling import suggestion

_MAX_EXPONENT = 400  # Decimals are written without an exponent.
_INTEGER = re.compile(r"[-+]?\d+")
_TRUE_WORDS = frozenset({"true", "yes", "on"})
_FALSE_WORDS = frozenset({"false", "no", "off"})


class InvalidValue(ValueError):
    """Error for an invalid value. `expected` describes the valid values."""

    def __init__(self, expected: str, fix: str = "") -> None:
        super().__init__(expected)
        self.expected, self.fix = expected, fix


def _text(tree: Tree, _: Attribute) -> str:
    if isinstance(tree, str):
        return str(tree)
    raise InvalidValue("a string", "" if isinstance(tree, dict | list) else "put the value in quotes")


def _enumeration(tree: Tree, attribute: Attribute) -> str:
    text = _text(tree, attribute)
    if text not in attribute.enum:
        raise InvalidValue("one of " + ", ".join(attribute.enum), suggestion(text, attribute.enum))
    return text


def _integer(tree: Tree, _: Attribute) -> int:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return tree
    if isinstance(tree, str) and len(tree) <= MAX_DIGITS:
        value = tree.strip()
        if _INTEGER.fullmatch(value):
            return int(value)
        try:
            number = resolve_plain_values(Plain(value))
        except ValueError as error:  # The number is infinite or too large, such as 1e400.
            raise InvalidValue("a whole number") from error
        if isinstance(number, int) and not isinstance(number, bool):
            return number
        if isinstance(number, float) and number.is_integer():
            return int(number)
    raise InvalidValue("a whole number")


def _float(tree: Tree | float, _: Attribute) -> float | int:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return tree
    if isinstance(tree, str | float):  # Defaults in a schema can be floats.
        try:
            number = float(tree)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return int(tree) if isinstance(tree, str) and _INTEGER.fullmatch(tree) else number
    raise InvalidValue("a number")


def _decimal(tree: Tree | float, _: Attribute) -> Decimal:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return Decimal(tree)
    tree = str(tree) if isinstance(tree, float) else tree  # Defaults in a schema can be floats.
    if isinstance(tree, str):
        try:
            number = Decimal(tree.strip())
        except InvalidOperation:
            number = Decimal("nan")
        if number.is_finite() and abs(number.adjusted()) <= _MAX_EXPONENT and len(tree) <= MAX_DIGITS:
            return number
    raise InvalidValue("a number")


def _boolean(tree: Tree, _: Attribute) -> bool:
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, str) and tree.lower() in _TRUE_WORDS | _FALSE_WORDS:
        return tree.lower() in _TRUE_WORDS
    raise InvalidValue("true or false")


def _temporal(read: Callable[[str], str], expected: str) -> Callable[[Tree, Attribute], str]:
    def reader(tree: Tree, _: Attribute) -> str:
        if isinstance(tree, str) or (isinstance(tree, int) and not isinstance(tree, bool)):
            try:
                return read(str(tree))
            except ValueError:
                pass
        raise InvalidValue(expected)

    return reader


def _json(tree: Tree, _: Attribute) -> Any:
    try:
        return resolve_plain_values(tree)
    except ValueError as error:
        raise InvalidValue("a JSON value", str(error)) from error


def _array(tree: Tree, attribute: Attribute) -> Any:
    if not isinstance(tree, list):
        raise InvalidValue("a list")
    return _json(tree, attribute)


def _blocks(tree: Tree, attribute: Attribute) -> Any:
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise InvalidValue("a list of blocks")
    return [_block(item, attribute) for item in tree]


def _block(tree: Tree, attribute: Attribute) -> Any:
    if isinstance(tree, dict):
        return {
            key: _block_text(key, value) if key in TEXT_MEMBERS else _block(value, attribute)
            for key, value in tree.items()
        }
    if isinstance(tree, list):
        return [_block(item, attribute) for item in tree]
    return _json(tree, attribute)


def _block_text(key: str, tree: Tree) -> Any:
    # All members except `text` can be null. Text that looks like a number stays a string.
    if isinstance(tree, str) and (key == "text" or not is_null(tree)):
        return str(tree)
    return None if is_null(tree) else resolve_plain_values(tree)


def read_target(tree: Tree, attribute: Attribute) -> Any:
    if attribute.type == "media":
        if isinstance(tree, str):
            return to_nfc(str(tree).lstrip("/").removeprefix("uploads/"))
        raise InvalidValue("a path below uploads/")
    return _target(tree, attribute.morph)


def _relation(tree: Tree, attribute: Attribute) -> tuple[Any, ...]:
    if attribute.derived:
        raise InvalidValue(
            "empty, because the relation is stored on the other side", f'set "{attribute.mapped_by}" there'
        )
    found = tree if isinstance(tree, list) else [tree]
    if not attribute.to_many and len(found) > 1:
        raise InvalidValue("a single documentId")
    return tuple(dict.fromkeys(read_target(item, attribute) for item in found if not is_null(item)))


def _target(tree: Tree, morph: bool) -> Any:
    if isinstance(tree, dict):
        document_id, uid = tree.get("documentId"), tree.get("__type")
        if isinstance(document_id, str) and (not morph or isinstance(uid, str)):
            return (str(uid), to_nfc(document_id)) if morph else to_nfc(document_id)
    elif isinstance(tree, str) and not morph:
        return id_of_reference(tree)
    raise InvalidValue("a mapping of __type and documentId" if morph else "a documentId")


def _media(tree: Tree, attribute: Attribute) -> tuple[str, ...]:
    found = tree if isinstance(tree, list) else [tree]
    if not attribute.multiple and len(found) > 1:
        raise InvalidValue("a single path below uploads/")
    return tuple(dict.fromkeys(read_target(i, attribute) for i in found if not is_null(i)))


READERS: Mapping[str, Callable[[Tree, Attribute], Any]] = {
    "string": _text,
    "text": _text,
    "richtext": _text,
    "email": _text,
    "password": _text,
    "uid": _text,
    "enumeration": _enumeration,
    "integer": _integer,
    "biginteger": _integer,
    "float": _float,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _temporal(read_date, "a date such as 2024-02-29"),
    "time": _temporal(read_time, "a time such as 10:20:30"),
    "datetime": _temporal(read_timestamp, "a timestamp such as 2024-02-29T10:20:30Z"),
    "timestamp": _temporal(read_timestamp, "a timestamp such as 2024-02-29T10:20:30Z"),
    "json": _json,
    "array": _array,
    "blocks": _blocks,
    "relation": _relation,
    "media": _media,
}
