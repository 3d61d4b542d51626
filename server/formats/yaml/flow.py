"""Changes flow collections of a YAML text, `[a, b]` and `{a: 1}`: only what differs is written anew."""

from collections.abc import Iterator
from typing import Any

from server.formats.brackets import Part, brackets
from server.formats.differences import steps
from server.formats.edits import REMOVE, same
from server.formats.syntax_tree import Node
from server.formats.tree import Tree
from server.formats.yaml.writer import yaml_entry


def changed_flow(text: str, node: Node, tree: Tree, value: Any) -> str | None:
    """The text of a flow collection with another value, item by item; None where that is not possible."""
    if not value or node.style != "flow" or node.anchored:
        return None
    if node.kind == "list" and isinstance(value, list | tuple) and len(tree) == len(node.items):
        spans = [(item.start, item.end) for item in node.items]
        found = brackets(text, node.start, node.end, spans)
        return found.written(_items(text, node, tree, list(value))) if found else None
    if node.kind == "map" and isinstance(value, dict) and [key.value for key in node.keys] == list(tree):
        pairs = zip(node.keys, node.items, strict=True)
        found = brackets(text, node.start, node.end, [(k.start, max(k.end, i.end)) for k, i in pairs])
        return found.written(_members(text, node, tree, value)) if found else None
    return None


def _items(text: str, node: Node, tree: list[Tree], value: list[Any]) -> Iterator[Part]:
    for step in steps(tree, value):
        if step.kind == "comes":
            yield -1, _written(step.new)
        elif step.kind == "changes":
            yield step.old, _changed(text, node.items[step.old], tree[step.old], step.new)
        elif step.kind == "goes":
            yield step.old, None
        elif step.kind != "leaves":
            yield step.old, text[node.items[step.old].start : node.items[step.old].end]


def _members(text: str, node: Node, tree: dict[str, Tree], value: dict[str, Any]) -> Iterator[Part]:
    for i, (key, item) in enumerate(zip(node.keys, node.items, strict=True)):
        new = value.get(key.value, REMOVE)
        if new is REMOVE:
            yield i, None
        elif same(tree[key.value], new):
            yield i, text[key.start : max(key.end, item.end)]
        elif item.end > item.start:
            yield i, text[key.start : item.start] + _changed(text, item, tree[key.value], new)
        else:
            yield i, text[key.start : key.end] + ": " + _written(new)
    yield from ((-1, _written({k: v})[1:-1]) for k, v in value.items() if k not in tree and v is not REMOVE)


def _changed(text: str, node: Node, tree: Tree, value: Any) -> str:
    """The text of what stands in a flow collection with another value."""
    made = changed_flow(text, node, tree, value)
    return made or _written(value, node.style if node.kind == "scalar" else "")


def _written(value: Any, quote: str = "") -> str:
    """A value as it is written in a flow collection, in the quotes that text had before where it can."""
    if quote in ("'", '"'):
        quoted = yaml_entry("k", value, quote=quote).removesuffix("\n").removeprefix("k: ")
        if quoted.startswith(quote):
            return quoted
    return yaml_entry("k", [value], flow=True).removesuffix("]\n").removeprefix("k: [")
