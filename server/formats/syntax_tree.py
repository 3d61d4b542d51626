"""The syntax tree of a YAML or JSON text: nodes with their spans, in indexes of its characters.

`edit_yaml` and `edit_json` change a file by cutting at these spans, so that all else keeps its bytes.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any, Literal

import yaml

from server.formats.tree import MAX_DEPTH, SyntaxProblem
from server.formats.yaml_reader import LOADER

Kind = Literal["scalar", "map", "list", "alias"]

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]}\s]+")


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
        """The index of a key in a mapping, or -1."""
        return next((i for i, node in enumerate(self.keys) if node.value == key), -1)


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


def json_nodes(text: str) -> Node:
    """The node of a JSON text that `read_json` has accepted."""
    return _json_value(text, _skip(text, 0), 0)[0]


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _json_value(text: str, at: int, depth: int) -> tuple[Node, int]:
    if depth > 4 * MAX_DEPTH:
        raise SyntaxProblem("nested too deeply", None, "flatten it")
    if text[at] == "{":
        return _json_collection(text, at, depth, "}")
    if text[at] == "[":
        return _json_collection(text, at, depth, "]")
    if text[at] == '"':
        value, end = json.decoder.scanstring(text, at + 1)  # type: ignore[attr-defined]
        return Node("scalar", at, end, '"', value), end
    found = _SCALAR.match(text, at)
    end = found.end() if found else at
    return Node("scalar", at, end, "", text[at:end]), end


def _json_collection(text: str, at: int, depth: int, closing: str) -> tuple[Node, int]:
    node = Node("map" if closing == "}" else "list", at, at, "flow")
    at = _skip(text, at + 1)
    while text[at] != closing:
        if closing == "}":
            key, at = _json_value(text, at, depth + 1)
            node.keys.append(key)
            at = _skip(text, _skip(text, at) + 1)
        item, at = _json_value(text, at, depth + 1)
        node.items.append(item)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    node.end = at + 1
    return node, node.end
