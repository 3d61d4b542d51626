"""Values that parsers read from files.

Unquoted values stay text (`Plain`), because the schema determines their types.
"""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_SHOWN_CHARS = 40  # limit for values in messages

Tree = Any


class Plain(str):
    """An unquoted value, whose type the schema determines."""

    __slots__ = ()


def describe_value(tree: Any) -> str:
    """Describe a value for an error message: `"abc"`, `12` or `a list`."""
    if isinstance(tree, dict):
        return "a mapping"
    if isinstance(tree, list):
        return "a list"
    if tree is None:
        return "nothing"
    text = str(tree)
    text = text if len(text) <= MAX_SHOWN_CHARS else text[: MAX_SHOWN_CHARS - 3] + "…"
    return f'"{text}"' if isinstance(tree, str) else text.lower() if isinstance(tree, bool) else text


class SyntaxProblem(ValueError):
    """A syntax error in a file, with its position and a hint on how to fix it.

    The line and column start at 1, and are None if they aren't known.
    """

    def __init__(self, message: str, line: int | None, fix: str = "", column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.fix, self.column = message, line, fix, column


def depth_of(tree: Tree) -> int:
    """Return the nesting depth of a tree, computed without recursion."""
    deepest, open_ = 0, [(tree, 1)]
    while open_:
        node, depth = open_.pop()
        if isinstance(node, dict | list):
            deepest = max(deepest, depth)
            inner = node.values() if isinstance(node, dict) else node
            open_.extend((value, depth + 1) for value in inner)
    return deepest


def size_of(tree: Tree) -> int:
    """Return the number of values in a tree, but at most MAX_NODES + 1."""
    count, open_ = 0, [tree]
    while open_ and count <= MAX_NODES:
        node = open_.pop()
        count += 1
        if isinstance(node, dict):
            open_.extend(node.values())
        elif isinstance(node, list):
            open_.extend(node)
    return count


# --- syntax tree ----------------------------------------------------------------------------------

Kind = Literal["scalar", "map", "list", "alias"]


@dataclass(slots=True)
class Node:
    """A value in a syntax tree. It ends at `end`, before any comments and blank lines that follow it.

    `style` is the quotation mark or the block character of a scalar. For a mapping or list, it is `flow` or
    `block`. If `anchored` is set, the value has an anchor or a tag.
    """

    kind: Kind
    start: int
    end: int
    style: str = ""
    value: str = ""
    keys: list["Node"] = field(default_factory=list)
    items: list["Node"] = field(default_factory=list)
    anchored: bool = False

    def find(self, key: str) -> int:
        return next((i for i in reversed(range(len(self.keys))) if self.keys[i].value == key), -1)

    def all(self, key: str) -> list[int]:
        return [i for i, node in enumerate(self.keys) if node.value == key]


# --- scalars --------------------------------------------------------------------------------------

# Python parses longer numbers slowly or rejects them.
MAX_DIGITS = 4000

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_NO_NUMBER = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def is_null(value: Tree) -> bool:
    return value is None or (type(value) is Plain and value in NULLS)


def resolve_plain_values(tree: Tree) -> Any:
    """Convert unquoted values to the types that they have in YAML 1.2's core schema.

    Raises ValueError for .inf, .nan and very large numbers.
    """
    if type(tree) is Plain:
        return _typed_scalar(tree)
    if isinstance(tree, dict):
        return {key: resolve_plain_values(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [resolve_plain_values(value) for value in tree]
    return tree


def _typed_scalar(text: Plain) -> Any:
    if text in NULLS:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        if len(text) > MAX_DIGITS:
            raise ValueError(f"a number must not have more than {MAX_DIGITS} digits")
        return int(text)
    if _FLOAT.fullmatch(text):
        number = float(text)
        if math.isinf(number):
            raise ValueError(f"the number {text} is too large")
        return number
    if _BASED.fullmatch(text):
        return int(text, 0)
    if _NO_NUMBER.fullmatch(text):
        raise ValueError(f"{text} can't be written in JSON")
    return str(text)
