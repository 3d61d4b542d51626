"""Editor that moves top-level YAML keys into or out of a mapping. The caller must verify the result."""

from collections.abc import Collection

from server.formats.text_positions import line_end, line_start, newline_of, next_line
from server.formats.tree import Node
from server.formats.yaml.reader import yaml_nodes

_INDENT = "  "


def nest_keys(text: str, names: Collection[str], parent: str) -> str | None:
    """Move the top-level keys `names` into a new mapping with the key `parent`.

    Return the new text, or None if this is impossible.
    """
    root = _block_mapping(text)
    spans = sorted(span for name in names if root for span in [_key_lines(text, root, name)] if span)
    if root is None or len(spans) != len(names) or any(root.find(name) < 0 for name in names):
        return None
    newline, first = newline_of(text), spans[0][0]
    moved = "".join(text[start:end] for start, end in spans).splitlines(keepends=True)
    inner = "".join(_INDENT + line if line.strip() else line for line in moved)
    for start, end in reversed(spans):
        text = text[:start] + text[end:]
    return f"{text[:first]}{parent}:{newline}{inner}{text[first:]}"


def unnest_keys(text: str, parent: str) -> str | None:
    """Move the keys in a mapping to the top level, and remove the mapping.

    Return the new text, or None if this is impossible.
    """
    root = _block_mapping(text)
    span = _key_lines(text, root, parent) if root else None
    if root is None or span is None:
        return None
    inner, key = root.items[root.find(parent)], root.keys[root.find(parent)]
    below = next_line(text, key.end)
    if inner.kind != "map" or inner.style != "block" or inner.anchored or inner.start < below:
        return None
    comment = text[key.end : line_end(text, key.end)].lstrip(" ").removeprefix(":").strip()
    if comment and not comment.startswith("#"):
        return None
    margin = text[line_start(text, inner.keys[0].start) : inner.keys[0].start]
    lines = text[below : span[1]].splitlines(keepends=True)
    moved = [line.removeprefix(margin) if line.startswith(margin) else line.lstrip(" ") for line in lines]
    above = comment + newline_of(text) if comment else ""
    return text[: span[0]] + above + "".join(moved) + text[span[1] :]


def _block_mapping(text: str) -> Node | None:
    root = yaml_nodes(text) if text.endswith("\n") else None
    return root if root and root.kind == "map" and root.style == "block" else None


def _key_lines(text: str, root: Node, name: str) -> tuple[int, int] | None:
    i = root.find(name)
    if i < 0 or len(list(root.all(name))) > 1:
        return None
    key, item = root.keys[i], root.items[i]
    start = line_start(text, key.start)
    end = max(item.end, key.end)
    while end > key.end and text[end - 1] in " \t\r\n":
        end -= 1
    return (start, next_line(text, end)) if key.start == start else None
