"""A tree: what the text of a file says, as plain data in which what the writer wrote is still to be seen.

A tree is dict, list, str, Plain, int, bool or None. A Plain is a scalar that has no type yet: one
that YAML text has without quotes, or a JSON number with a fraction. What it means is decided by the
attribute that it is written under (`documents.readers`), not by YAML: `country: NO` is Norway."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_SHOWN_CHARS = 40  # Of a value in a message.

Tree = Any


class Plain(str):
    """The text of a scalar whose type the schema decides."""

    __slots__ = ()


def describe_value(tree: Any) -> str:
    """Return a value as messages show what was found: quoted text, a number, `a list` or `a mapping`."""
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
    """Text that can't be read: `message`, `line` and `column` from 1 (None: unknown), how to `fix` it."""

    def __init__(self, message: str, line: int | None, fix: str = "", column: int | None = None) -> None:
        super().__init__(message)
        self.message, self.line, self.fix, self.column = message, line, fix, column


def depth_of(tree: Tree) -> int:
    """How many lists and mappings are inside of each other, found without recursion."""
    deepest, open_ = 0, [(tree, 1)]
    while open_:
        node, depth = open_.pop()
        if isinstance(node, dict | list):
            deepest = max(deepest, depth)
            inner = node.values() if isinstance(node, dict) else node
            open_.extend((value, depth + 1) for value in inner)
    return deepest


def size_of(tree: Tree) -> int:
    """How many values a tree holds, counted without recursion and no further than MAX_NODES."""
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
    """One value: where it stands, how it is written, and what is inside of it.

    `end` is behind its last character: comments and blank lines after it are not part of it.
    `style` is that of a scalar (`'`, `"`, `|`, `>`, or "" without quotes) or of a collection (`flow`
    or `block`). A node is `anchored` where it has an anchor or a tag.
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
        """The index of a key in a mapping, or -1; of a key that stands twice, the one that counts."""
        return next((i for i in reversed(range(len(self.keys))) if self.keys[i].value == key), -1)

    def all(self, key: str) -> list[int]:
        """The indexes of a key in a mapping: several if it stands twice."""
        return [i for i, node in enumerate(self.keys) if node.value == key]


# --- scalars --------------------------------------------------------------------------------------

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
