"""Conversion of `blocks` to HTML."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

MAX_DEPTH = 60  # more deeply nested blocks are dropped
_MARKS: Mapping[str, str] = {
    "code": "code", "strikethrough": "del", "underline": "u", "italic": "em", "bold": "strong",
}  # fmt: skip
_WRAPPED: Mapping[str, str] = {
    "paragraph": "p", "quote": "blockquote", "list-item": "li",
}  # fmt: skip


def blocks_to_html(blocks: Any) -> str:
    return _nodes(blocks, 0)


def _nodes(nodes: Any, depth: int) -> str:
    if not isinstance(nodes, Sequence) or isinstance(nodes, str) or depth > MAX_DEPTH:
        return ""
    return "".join(_node(node, depth) for node in nodes if isinstance(node, Mapping))


def _node(node: Mapping[str, Any], depth: int) -> str:
    kind = node.get("type")
    if kind == "text":
        return _text(node)
    if kind == "image":
        return _image(node.get("image"))
    inner = _nodes(node.get("children"), depth + 1)
    if kind == "link":
        return f'<a href="{escape(str(node.get("url") or ""))}">{inner}</a>'
    if kind == "heading":
        level = node.get("level")
        tag = f"h{level}" if level in range(1, 7) else "h2"
        return f"<{tag}>{inner}</{tag}>\n"
    if kind == "list":
        tag = "ol" if node.get("format") == "ordered" else "ul"
        return f"<{tag}>{inner}</{tag}>\n"
    if kind == "code":
        return f"<pre><code>{inner}</code></pre>\n"
    wrapped = _WRAPPED.get(str(kind))
    return f"<{wrapped}>{inner}</{wrapped}>\n" if wrapped else ""


def _text(node: Mapping[str, Any]) -> str:
    html = escape(str(node.get("text") or ""), quote=False)
    for mark, tag in _MARKS.items():
        if html and node.get(mark) is True:
            html = f"<{tag}>{html}</{tag}>"
    return html


def _image(image: Any) -> str:
    if not isinstance(image, Mapping) or not image.get("url"):
        return ""
    alt = image.get("alternativeText") or ""
    return f'<p><img src="{escape(str(image["url"]))}" alt="{escape(str(alt))}"></p>\n'
