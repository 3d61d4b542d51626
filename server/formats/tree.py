"""A tree: what the text of a file says, as plain data in which what the writer wrote is still to be seen.

A tree is dict, list, str, Plain, int, bool or None. A Plain is a scalar that has no type yet: one
that YAML text has without quotes, or a JSON number with a fraction. What it means is decided by the
attribute that it is written under (`documents.readers`), not by YAML: `country: NO` is Norway.
"""

from typing import Any

MAX_DEPTH = 64
MAX_NODES = 200_000

Tree = Any


class Plain(str):
    """The text of a scalar whose type the schema decides."""

    __slots__ = ()


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
