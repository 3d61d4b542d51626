"""The syntax tree of a YAML text."""

from typing import Any

import yaml

from server.formats.syntax_tree import Node
from server.formats.yaml.reader import LOADER


def yaml_nodes(text: str) -> Node | None:
    """The node of the one document in a YAML text; None where it has no content."""
    loader = LOADER(text)
    root: Node | None = None
    stack: list[Node] = []
    try:
        while True:
            event = loader.get_event()
            kind = type(event)
            if kind is yaml.StreamEndEvent:
                return root
            if kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                _close(stack.pop(), event)
                continue
            node = _node(event)
            if node is None:
                continue
            if stack:
                _add(stack[-1], node)
            else:
                root = node
            if node.kind in ("map", "list"):
                stack.append(node)
    finally:
        loader.dispose()


def _node(event: Any) -> Node | None:
    start, end = event.start_mark.index, event.end_mark.index
    kind = type(event)
    if kind is yaml.AliasEvent:
        return Node("alias", start, end, value=event.anchor)
    if kind is yaml.ScalarEvent:
        node = Node("scalar", start, end, event.style or "", event.value)
    elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
        style = "flow" if event.flow_style else "block"
        node = Node("map" if kind is yaml.MappingStartEvent else "list", start, end, style)
    else:
        return None
    node.anchored = event.anchor is not None or event.tag not in (None, "!")
    return node


def _add(parent: Node, node: Node) -> None:
    if parent.kind == "map" and len(parent.keys) == len(parent.items):
        parent.keys.append(node)
    else:
        parent.items.append(node)


def _close(node: Node, event: Any) -> None:
    """Set the end of a collection: libyaml gives that of a block only where the next token begins."""
    if node.style == "flow":
        node.end = event.end_mark.index
    elif node.items:
        node.end = max(node.items[-1].end, node.keys[-1].end + 1 if node.keys else 0)
