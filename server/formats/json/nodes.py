"""The syntax tree of a JSON text."""

import json
import re

from server.formats.syntax_tree import Node
from server.formats.tree import MAX_DEPTH, SyntaxProblem

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]}\s]+")


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
