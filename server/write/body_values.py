"""Strict parsing of scalar values in request bodies."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from server.auth.passwords import hash_password
from server.documents.readers import READERS, InvalidValue
from server.documents.timestamps import read_partial_timestamp
from server.documents.values import HashedPassword, empty_value
from server.formats.json import read_json
from server.formats.tree import Plain, SyntaxProblem, Tree
from server.schema.model import Attribute, Schema, Type
from server.write.passwords import values_in

_TIME = re.compile(r"\d{1,2}:\d{2}:\d{2}(\.\d{1,3})?")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_NUMBER_PATTERNS = {
    "biginteger": re.compile(r"[+-]?[0-9]+"),
    "date": re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].*)?"),
}
_SURROGATE = re.compile(r"[\ud800-\udfff\x00]")


def default_of(attribute: Attribute) -> Any:
    """Return an attribute's default value (hashed for a password), or its empty value if it has no
    default.
    """
    if attribute.has_default:
        reading: Any = None
        try:
            value = READERS[attribute.type](attribute.default, attribute)
            return _hash_default(value) if attribute.type == "password" else value
        except InvalidValue:
            return reading
    return empty_value(attribute)


# The cache saves 0.1 s in each write that uses a password's default.
@lru_cache(maxsize=64)
def _hash_default(text: str) -> str:
    # Documents can safely share this hash, because the schema contains the default in plain text anyway.
    return hash_password(text)


def read_scalar(attribute: Attribute, tree: Tree) -> Any:
    """Parse a scalar attribute's value in a request body, and hash it if it is a password.

    Raises InvalidValue if the value has the wrong type or format.
    """
    kind = attribute.type
    if kind == "boolean":
        return _parse_boolean(tree)
    if attribute.group == "string":
        if not isinstance(tree, str) or type(tree) is Plain:
            raise InvalidValue("a string")
        if _SURROGATE.search(tree):
            raise InvalidValue("a string without null characters or halves of surrogate pairs")
        if kind == "password":
            return str(tree) if isinstance(tree, HashedPassword) else hash_password(tree)
        return READERS[kind](tree, attribute)
    if kind == "time" and not (isinstance(tree, str) and _TIME.fullmatch(tree.strip())):
        raise InvalidValue("a time, HH:mm:ss.SSS")
    if kind in _NUMBER_PATTERNS and not _NUMBER_PATTERNS[kind].fullmatch(str(tree).strip()):
        raise InvalidValue("a whole number" if kind == "biginteger" else "a date, YYYY-MM-DD")
    if kind in ("datetime", "timestamp"):
        return _parse_timestamp(tree)
    value = READERS[kind](_parse_form_value(tree) if kind == "json" else tree, attribute)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidValue("a number")
    return value


def _parse_boolean(tree: Tree) -> bool:
    text = str(_to_whole_number(tree)).lower()
    if text not in _BOOLEANS:
        raise InvalidValue("true or false")
    return _BOOLEANS[text]


def _parse_timestamp(tree: Tree) -> str:
    # A string such as `2024-05`, or a number of milliseconds since 1970. Raises InvalidValue.
    tree = _to_whole_number(tree)
    try:
        if isinstance(tree, str | int) and type(tree) not in (bool, Plain):
            return read_partial_timestamp(str(tree))
    except ValueError:
        pass
    raise InvalidValue("a timestamp such as 2024-02-29T10:20:30Z")


def _to_whole_number(tree: Tree) -> Tree:
    whole, _, fraction = tree.partition(".") if type(tree) is Plain else ("", "", "")
    return int(whole) if whole.lstrip("-").isdecimal() and not fraction.strip("0") else tree


def json_texts(schema: Schema, type_: Type, data: Mapping[str, Tree]) -> Iterator[str]:
    for attribute, tree in values_in(schema, type_, data):
        if attribute.type == "json" and _is_json_text(tree):
            yield tree


def _is_json_text(tree: Tree) -> bool:
    return isinstance(tree, str) and type(tree) is not Plain and tree.lstrip()[:1] in ("{", "[")


def _parse_form_value(tree: Tree) -> Tree:
    if _is_json_text(tree):
        try:
            return read_json(tree)
        except SyntaxProblem:
            pass  # The string is not JSON, so return it unchanged.
    return tree


def shown(tree: Tree) -> Any:
    if isinstance(tree, str | int | float | bool) or tree is None:
        return tree[:200] if isinstance(tree, str) else tree
    return "a list" if isinstance(tree, list) else "an object"
