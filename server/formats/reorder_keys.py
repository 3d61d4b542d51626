"""Editor that reorders JSON or YAML keys together with their comments. The caller must verify the result."""

from collections.abc import Sequence

from server.formats.json import json_nodes
from server.formats.text_positions import KeyPath, comments_start, line_start, newline_of, next_line
from server.formats.tree import Node
from server.formats.yaml.reader import yaml_nodes

_Span = tuple[int, int]


def reorder_keys(path: str, text: str, key_path: KeyPath, names: Sequence[str]) -> str | None:
    """Put the keys of the mapping at `key_path` in the order of `names`, and return the new text.

    Return None if this is impossible, for example because `names` are not the mapping's keys.
    """
    is_yaml = path.endswith((".yaml", ".yml"))
    if is_yaml and not text.endswith("\n"):
        text += newline_of(text)
    node = yaml_nodes(text) if is_yaml else json_nodes(text)
    for key in key_path:
        i = node.find(str(key)) if node and node.kind == "map" else -1
        node = node.items[i] if node and i >= 0 else None
    if node is None or node.kind != "map" or sorted(key.value for key in node.keys) != sorted(names):
        return None
    spans = _line_spans(text, node) if node.style == "block" else _flow_spans(node)
    if spans is None:
        return None
    by_name = {key.value: span for key, span in zip(node.keys, spans, strict=True)}
    made, end = "", 0
    for span, name in zip(spans, names, strict=True):
        start, stop = by_name[name]
        made, end = made + text[end : span[0]] + text[start:stop], span[1]
    return made + text[end:]


def _flow_spans(node: Node) -> list[_Span]:
    return [(key.start, item.end) for key, item in zip(node.keys, node.items, strict=True)]


def _line_spans(text: str, node: Node) -> list[_Span] | None:
    """Return the start and end of each key's lines, including comments, or None if two keys share a line."""
    spans: list[_Span] = []
    lowest = line_start(text, node.keys[0].start)
    while lowest > 0 and text[line_start(text, lowest - 1) : lowest].lstrip(" \t").startswith("#"):
        lowest = line_start(text, lowest - 1)
    for key, item in zip(node.keys, node.items, strict=True):
        end = max(item.end, key.end)
        while end > key.end and text[end - 1] in " \t\r\n":
            end -= 1
        start = comments_start(text, key.start, lowest)
        if text[line_start(text, key.start) : key.start].strip() or start < lowest:
            return None
        lowest = next_line(text, end)
        spans.append((start, lowest))
    return spans
