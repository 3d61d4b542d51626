"""The values of a request body that hold no others, read strictly by their type."""

import math
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from server.auth.passwords import hash_password
from server.documents.readers import READERS, Unreadable
from server.documents.timestamps import read_partial_timestamp
from server.documents.values import Hashed, empty_value
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
    """What an attribute holds when nobody gave it a value. A default of the wrong type is ignored.

    That of a password is hashed.
    """
    if attribute.has_default:
        reading: Any = None
        try:
            value = READERS[attribute.type](attribute.default, attribute)
            return _hash_default(value) if attribute.type == "password" else value
        except Unreadable:
            return reading
    return empty_value(attribute)


# Saves a tenth of a second of each write that leaves such a password out.
@lru_cache(maxsize=64)
def _hash_default(text: str) -> str:
    """The hash of a password's default, made once: others would wait for it.

    Documents may share it, since anybody who reads the schema knows the password.
    """
    return hash_password(text)


def read_scalar(attribute: Attribute, tree: Tree) -> Any:
    """A JSON value as its attribute's type holds it. Raises Unreadable."""
    kind = attribute.type
    if kind == "boolean":
        return _boolean(tree)
    if attribute.group == "string":
        if not isinstance(tree, str) or type(tree) is Plain:
            raise Unreadable("text")
        if _SURROGATE.search(tree):
            raise Unreadable("text without null characters or halves of surrogate pairs")
        if kind == "password":
            return str(tree) if isinstance(tree, Hashed) else hash_password(tree)
        return READERS[kind](tree, attribute)
    if kind == "time" and not (isinstance(tree, str) and _TIME.fullmatch(tree.strip())):
        raise Unreadable("a time, HH:mm:ss.SSS")
    if kind in _NUMBER_PATTERNS and not _NUMBER_PATTERNS[kind].fullmatch(str(tree).strip()):
        raise Unreadable("a whole number" if kind == "biginteger" else "a date, YYYY-MM-DD")
    if kind in ("datetime", "timestamp"):
        return _timestamp(tree)
    value = READERS[kind](_parse_form_value(tree) if kind == "json" else tree, attribute)
    if isinstance(value, float) and not math.isfinite(value):
        raise Unreadable("a number")
    return value


def _boolean(tree: Tree) -> bool:
    """`true` or `false`, as text as well, or 1 or 0."""
    text = str(_whole(tree)).lower()
    if text not in _BOOLEANS:
        raise Unreadable("true or false")
    return _BOOLEANS[text]


def _timestamp(tree: Tree) -> str:
    """ISO 8601, whole or short (`2024-05`), or milliseconds since 1970, as a number or as text."""
    tree = _whole(tree)
    try:
        if isinstance(tree, str | int) and type(tree) not in (bool, Plain):
            return read_partial_timestamp(str(tree))
    except ValueError:
        pass
    raise Unreadable("a timestamp such as 2024-02-29T10:20:30Z")


def _whole(tree: Tree) -> Tree:
    """A JSON number such as 5.0 as the whole number that it is; anything else as it is."""
    whole, _, fraction = tree.partition(".") if type(tree) is Plain else ("", "", "")
    return int(whole) if whole.lstrip("-").isdecimal() and not fraction.strip("0") else tree


def json_texts(schema: Schema, type_: Type, data: Mapping[str, Tree]) -> Iterator[str]:
    """Yield the texts of a body that are read as JSON (`read_scalar`), in its components too."""
    for attribute, tree in values_in(schema, type_, data):
        if attribute.type == "json" and _is_json_text(tree):
            yield tree


def _is_json_text(tree: Tree) -> bool:
    """Whether a value is text that begins as a JSON object or list does: forms send these so."""
    return isinstance(tree, str) and type(tree) is not Plain and tree.lstrip()[:1] in ("{", "[")


def _parse_form_value(tree: Tree) -> Tree:
    """What text holds that is a JSON object or list; anything else as it is."""
    if _is_json_text(tree):
        try:
            return read_json(tree)
        except SyntaxProblem:
            pass  # It is text that only begins like that.
    return tree


def shown(tree: Tree) -> Any:
    """A value as an error shows it: short."""
    if isinstance(tree, str | int | float | bool) or tree is None:
        return tree[:200] if isinstance(tree, str) else tree
    return "a list" if isinstance(tree, list) else "an object"
