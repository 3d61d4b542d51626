"""What is wrong with the value of a `blocks` attribute: each node by its type, in the table NODES."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree

PROTOCOLS = ("http", "https", "ftp", "mailto", "tel")
_TEXTS = ("name", "url", "hash", "ext", "mime", "provider", "createdAt", "updatedAt")


@dataclass(frozen=True, slots=True)
class BlockNode:
    """A type of nodes: what its children may be, how many it must have, what its members must be.

    `members` maps a member to the sentence that says what is wrong with a value of it ("" for nothing).
    """

    children: tuple[str, ...] = ()
    least: int = 0
    members: Mapping[str, Callable[[Tree], str]] = field(default_factory=dict)


def _flag(value: Tree) -> str:
    return "" if value is None or isinstance(value, bool) else "must be true or false"


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
    """As browsers read it: an address with a protocol that does no harm, or a path of this site."""
    try:
        good = isinstance(value, str) and (value.startswith("/") or urlsplit(value).scheme in PROTOCOLS)
    except ValueError:
        good = False
    return "" if good else "must be a valid link"


INLINE = ("text", "link")
NODES: Mapping[str, BlockNode] = {
    "paragraph": BlockNode(INLINE, 1),
    "heading": BlockNode(INLINE, 1, {"level": _level}),
    "quote": BlockNode(INLINE, 1),
    "code": BlockNode(("text",), 1),
    "list": BlockNode(("list", "list-item"), 1, {"format": _format}),
    "list-item": BlockNode(INLINE),
    "image": BlockNode(INLINE),
    "link": BlockNode(("text",), 0, {"url": _link}),
    "text": BlockNode(
        members={
            "text": _text,
            **dict.fromkeys(("bold", "italic", "underline", "strikethrough", "code"), _flag),
        }
    ),
}
BLOCKS = ("paragraph", "heading", "list", "quote", "code", "image")


def wrong_blocks(tree: Tree, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """The path of each thing that is wrong with the blocks of a list, and a sentence."""
    for i, block in enumerate(tree if isinstance(tree, list) else ()):
        yield from _wrong(block, BLOCKS, (*path, i))


def _wrong(tree: Tree, allowed: tuple[str, ...], path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    kind = tree.get("type") if isinstance(tree, dict) else None
    if not isinstance(tree, dict) or kind not in allowed:
        yield path, f"must be a node of one of the following types: {', '.join(allowed)}"
        return
    node = NODES[str(kind)]
    for name, wrong in node.members.items():
        if sentence := wrong(tree.get(name)):
            yield (*path, name), sentence
    if kind == "image":
        yield from _wrong_image(tree.get("image"), (*path, "image"))
    if not node.children:
        return
    children = tree.get("children")
    if not isinstance(children, list) or len(children) < node.least:
        yield (*path, "children"), f"must be a list of {' and '.join(node.children)} nodes"
        return
    for i, child in enumerate(children):
        yield from _wrong(child, node.children, (*path, "children", i))


def _wrong_image(image: Any, path: KeyPath) -> Iterator[tuple[KeyPath, str]]:
    """An image holds what the media library says of its file."""
    members = image if isinstance(image, dict) else {}
    for name in _TEXTS:
        if not isinstance(members.get(name), str) or not members[name]:
            yield (*path, name), "is a required field"
    for name in ("width", "height", "size"):
        if not isinstance(members.get(name), int | Plain) or isinstance(members[name], bool):
            yield (*path, name), "is a required field"
