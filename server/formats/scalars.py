"""Types the scalars of a tree where no attribute says what they are, by YAML 1.2's core schema."""

import math
import re
from typing import Any

from server.formats.tree import Plain, Tree

MAX_DIGITS = 4000  # Of a number: Python takes long to read more, or refuses to.

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def is_null(value: Tree) -> bool:
    """Whether a value is null: JSON's, or an empty, `~` or `null` scalar without quotes."""
    return value is None or (type(value) is Plain and value in NULLS)


def typed(tree: Tree) -> Any:
    """The tree with every Plain typed by YAML 1.2's core schema. ValueError for .inf and .nan."""
    if type(tree) is Plain:
        return _typed_scalar(tree)
    if isinstance(tree, dict):
        return {key: typed(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [typed(value) for value in tree]
    return tree


def _typed_scalar(text: Plain) -> Any:
    if text in NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"a number has more than {MAX_DIGITS} digits")
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError(f"{text} is too large a number")
        return number
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NO_NUMBER.fullmatch(text):
        raise ValueError(f"{text} has no place in JSON")
    return str(text)
