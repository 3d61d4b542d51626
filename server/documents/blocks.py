"""Validation of rich text in the `blocks` format."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree

PROTOCOLS = ("http", "https", "ftp", "mailto", "tel")
TEXT_MEMBERS = frozenset({"type", "text", "url", "format", "language", "name", "alternativeText", "caption"})
_NUMBER_KEYS = ("width", "height", "size")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_TEXT_KEYS = ("name", "url", "hash", "ext", "mime", "provider", "createdAt", "updatedAt")


@dataclass(frozen=True, slots=True)
class BlockNode:
    """The rules for one type of node in rich text.

    `members` maps the names of required members to validators, which return "" if a value is valid. `flags`
    are the names of optional members that are true or false.
    """

    children: tuple[str, ...] = ()
    min_children: int = 0
    members: Mapping[str, Callable[[Tree], str]] = field(default_factory=dict)
    flags: tuple[str, ...] = ()


def _text(value: Tree) -> str:
    if value is None or isinstance(value, dict | list):
        return "must be defined with at least an empty string"
    return ""


def _level(value: Tree) -> str:
    good = not isinstance(value, bool) and str(value) in ("1", "2", "3", "4", "5", "6")
    return "" if good else "must be one of the following values: 1, 2, 3, 4, 5, 6"


def _format(value: Tree) -> str:
    good = value in ("ordered", "unordered")
    return "" if good else "must be one of the following values: ordered, unordered"


def _link(value: Tree) -> str:
    try:
        good = isinstance(value, str) and (value.startswith("/") or urlsplit(value).scheme in PROTOCOLS)
    except ValueError:
        good = False
    return "" if good else "must be a valid link"


INLINE_TYPES = ("text", "link")
NODES: Mapping[str, BlockNode] = {
    "paragraph": BlockNode(INLINE_TYPES, 1),
    "heading": BlockNode(INLINE_TYPES, 1, {"level": _level}),
    "quote": BlockNode(INLINE_TYPES, 1),
    "code": BlockNode(("text",), 1),
    "list": BlockNode(("list", "list-item"), 1, {"format": _format}),
    "list-item": BlockNode(INLINE_TYPES),
    "image": BlockNode(INLINE_TYPES),
    "link": BlockNode(("text",), 0, {"url": _link}),
    "text": BlockNode(
        members={
            "text": _text,
        },
        flags=("bold", "italic", "underline", "strikethrough", "code"),
    ),
}
BLOCK_TYPES = ("paragraph", "heading", "list", "quote", "code", "image")


def find_block_errors(tree: Tree, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    for i, block in enumerate(tree if isinstance(tree, list) else ()):
        yield from _find_errors(block, BLOCK_TYPES, (*path, i))


def _find_errors(tree: Tree, allowed: tuple[str, ...], path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    kind = tree.get("type") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or kind not in allowed:
        yield path, f"must be a node of one of the following types: {', '.join(allowed)}"
        return
    node = NODES[str(kind)]
    for name, wrong in node.members.items():
        if sentence := wrong(tree.get(name)):
            yield (*path, name), sentence
    for name in node.flags:
        if name in tree and str(tree[name]).lower() not in _BOOLEANS:
            yield (*path, name), "must be true or false"
    if kind == "image":
        yield from _find_image_errors(tree.get("image"), (*path, "image"))
    if not node.children:
        return
    children = tree.get("children")
    if not isinstance(children, list) or len(children) < node.min_children:
        yield (*path, "children"), f"must be a list of {' and '.join(node.children)} nodes"
        return
    for i, child in enumerate(children):
        yield from _find_errors(child, node.children, (*path, "children", i))


def _find_image_errors(image: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    # An image node contains a copy of the media file's metadata.
    members = image if isinstance(image, dict) else {}
    for name in _TEXT_KEYS:
        if not isinstance(members.get(name), str) or not members[name]:
            yield (*path, name), "is a required field"
    for name in _NUMBER_KEYS:
        if _number(members.get(name)) is None:
            yield (*path, name), "is a required field"


# --- numbers and booleans as strings -----------------------------------------------------------------------


def cast_blocks(tree: Tree) -> Tree:
    """Convert strings in valid blocks to numbers or booleans if the format requires these."""
    return [_cast(block) for block in tree] if isinstance(tree, list) else tree


def _cast(node: Tree) -> Tree:
    if not isinstance(node, dict):
        return node
    kind = node.get("type")
    return {name: _cast_member(str(kind), name, value) for name, value in node.items()}


def _cast_member(kind: str, name: str, value: Tree) -> Tree:
    if name == "children":
        return cast_blocks(value)
    if name == "level" and kind == "heading":
        return int(str(value))
    if name in NODES[kind].flags:
        return _BOOLEANS[str(value).lower()]
    if kind == name == "image" and isinstance(value, dict):
        return {key: _number(inner) if key in _NUMBER_KEYS else inner for key, inner in value.items()}
    return value


def _number(value: Tree) -> int | Plain | None:
    if isinstance(value, int | Plain) and not isinstance(value, bool):
        return value
    return Plain(value.strip()) if isinstance(value, str) and _NUMBER.fullmatch(value.strip()) else None


# --- text "null" instead of null --------------------------------------------------------------------


def unreadable_members(tree: Tree) -> Iterator[KeyPath]:
    # Earlier versions of Bifolio wrote the string "null" by mistake.
    for i, block in enumerate(tree if isinstance(tree, list) else ()):
        yield from _unreadable(block, (i,), _required(block, is_node=True))


def _required(tree: Tree, *, is_node: bool) -> tuple[str, ...]:
    kind = tree.get("type") if is_node and isinstance(tree, dict) else None
    members = NODES[kind].members if isinstance(kind, str) and kind in NODES else {}
    return ("type", "text", *members)


def _unreadable(tree: Tree, path: KeyPath, required: tuple[str, ...]) -> Iterator[KeyPath]:
    if isinstance(tree, list):
        for i, item in enumerate(tree):
            yield from _unreadable(item, (*path, i), _required(item, is_node=path[-1] == "children"))
    for name, value in tree.items() if isinstance(tree, dict) else ():
        if isinstance(value, dict):
            yield from _unreadable(value, (*path, name), _TEXT_KEYS if name == "image" else ())
        elif isinstance(value, list):
            yield from _unreadable(value, (*path, name), ())
        elif name in TEXT_MEMBERS and name not in required and value == "null" and type(value) is not Plain:
            yield (*path, name)
