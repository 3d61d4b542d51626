"""The values of a request body that hold no others: scalars and blocks, read strictly by their type."""

import math
import re
from collections.abc import Iterator
from typing import Any

from server.auth.passwords import hash_password
from server.documents.readers import READERS, Unreadable
from server.documents.values import empty_value
from server.formats.positions import KeyPath
from server.formats.tree import Plain, Tree
from server.query.booleans import read_boolean
from server.schema.model import Attribute
from server.write.faults import Fault
from server.write.passwords import Hashed

BLOCK_TYPES = ("paragraph", "heading", "list", "list-item", "quote", "code", "image", "link", "text")
TOP_BLOCKS = ("paragraph", "heading", "list", "quote", "code", "image")
_TIME = re.compile(r"\d{1,2}:\d{2}:\d{2}(\.\d{1,3})?")
_SURROGATE = re.compile(r"[\ud800-\udfff\x00]")


def default_of(attribute: Attribute) -> Any:
    """What an attribute holds when nobody gave it a value. A default of the wrong type is ignored."""
    if attribute.has_default:
        reading: Any = None
        try:
            return READERS[attribute.type](attribute.default, attribute)
        except Unreadable:
            return reading
    return empty_value(attribute)


def read_scalar(attribute: Attribute, tree: Tree) -> Any:
    """A JSON value as its attribute's type holds it. Raises Unreadable."""
    kind = attribute.type
    if kind == "boolean":
        value = read_boolean(tree.lower()) if isinstance(tree, str) else tree
        if not isinstance(value, bool):
            raise Unreadable("true or false")
        return value
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
    value = READERS[kind](tree, attribute)
    if isinstance(value, float) and not math.isfinite(value):
        raise Unreadable("a number")
    return value


def faults_of_blocks(tree: Tree, path: KeyPath) -> Iterator[Fault]:
    """What is wrong with the value of a `blocks` attribute."""
    for i, block in enumerate(tree if isinstance(tree, list) else ()):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind not in TOP_BLOCKS or not isinstance(block.get("children"), list):
            sentence = "is no block: a type and a list of children are expected"
            yield Fault((*path, i), sentence, shown(block))
        elif not all(map(_is_inline, block["children"])):
            yield Fault((*path, i, "children"), "has a child that is no text, link or list item")


def _is_inline(node: Tree) -> bool:
    if not isinstance(node, dict) or node.get("type") not in BLOCK_TYPES:
        return False
    children = node.get("children", [])
    return isinstance(children, list) and all(map(_is_inline, children))


def shown(tree: Tree) -> Any:
    """A value as an error shows it: short."""
    if isinstance(tree, str | int | float | bool) or tree is None:
        return tree[:200] if isinstance(tree, str) else tree
    return "a list" if isinstance(tree, list) else "an object"
