"""Conversion of `blocks` to Markdown."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from server.service.markdown.syntax import escape, escape_start, heading, image, safe_url

MAX_DEPTH = 60  # more deeply nested blocks are dropped
# marks with the Markdown around the text, from the inside to the outside
_MARKS: Mapping[str, tuple[str, str]] = {
    "strikethrough": ("~~", "~~"),
    "underline": ("<u>", "</u>"),
    "italic": ("*", "*"),
    "bold": ("**", "**"),
}
_BACKTICKS = re.compile("`+")
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}")


def blocks_to_markdown(blocks: Any) -> str:
    out: list[str] = []
    _blocks(blocks, "", out, 0)
    return "\n".join(out)


def _children(node: Any) -> Sequence[Mapping[str, Any]]:
    nodes = node.get("children") if isinstance(node, Mapping) else node
    if not isinstance(nodes, Sequence) or isinstance(nodes, str):
        return ()
    return [child for child in nodes if isinstance(child, Mapping)]


def _blocks(nodes: Any, prefix: str, out: list[str], depth: int) -> None:
    for node in _children(nodes):
        size = len(out)
        _append_block(node, prefix, out, depth)
        if size and len(out) > size:
            out.insert(size, prefix.rstrip())


def _append_block(node: Mapping[str, Any], prefix: str, out: list[str], depth: int) -> None:
    kind = node.get("type")
    if kind == "list":
        _list(node, prefix, out, depth)
    elif kind == "code":
        _code(node, prefix, out)
    elif kind == "image":
        picture = node.get("image")
        if isinstance(picture, Mapping) and picture.get("url"):
            out.append(prefix + image(str(picture.get("alternativeText") or ""), str(picture["url"])))
    elif kind == "heading":
        level = node.get("level")
        level = level if isinstance(level, int) and 1 <= level <= 6 else 2
        out.append(prefix + heading(level, " ".join(_inline(node, depth).split())))
    elif kind in ("paragraph", "quote"):
        inside = f"{prefix}> " if kind == "quote" else prefix
        out.extend(inside + line for line in _paragraph_lines(node, depth))


def _list(node: Mapping[str, Any], prefix: str, out: list[str], depth: int) -> None:
    ordered, number = node.get("format") == "ordered", 0
    margin = "   " if ordered else "  "
    if depth > MAX_DEPTH:
        return
    for child in _children(node):
        if child.get("type") == "list":
            _list(child, prefix + margin, out, depth + 1)
            continue
        number += 1
        first, *rest = _paragraph_lines(child, depth) or [""]
        marker = f"{number}. " if ordered else "- "
        out.append((prefix + marker + first).rstrip())
        out.extend(prefix + " " * len(marker) + line for line in rest)


def _code(node: Mapping[str, Any], prefix: str, out: list[str]) -> None:
    text = "".join(str(child.get("text") or "") for child in _children(node))
    fence = "`" * max(3, 1 + max(map(len, _BACKTICKS.findall(text)), default=0))
    language = str(node.get("language") or "")
    out.append(prefix + fence + (language if _LANGUAGE.fullmatch(language) else ""))
    out.extend(prefix + line for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
    out.append(prefix + fence)


def _paragraph_lines(node: Mapping[str, Any], depth: int) -> list[str]:
    lines = [line.strip() for line in _inline(node, depth).splitlines()]
    lines = [escape_start(line) for line in lines if line]
    return [*(line + "\\" for line in lines[:-1]), *lines[-1:]]


def _inline(node: Any, depth: int) -> str:
    return "".join(_span(child, depth + 1) for child in _children(node)) if depth <= MAX_DEPTH else ""


def _span(node: Mapping[str, Any], depth: int) -> str:
    kind = node.get("type")
    if kind == "text":
        return _text(node)
    inner = _inline(node, depth)
    url = safe_url(str(node.get("url") or "")) if kind == "link" else ""
    return f"[{inner}]({url})" if url else inner


def _text(node: Mapping[str, Any]) -> str:
    raw = str(node.get("text") or "")
    text = raw.strip()
    if not text:
        return raw
    written = _code_span(text) if node.get("code") is True else escape(text)
    for mark, (opening, closing) in _MARKS.items():
        if node.get(mark) is True:
            written = opening + written + closing
    start = raw.index(text)  # Spaces inside the marks would keep them from being recognized.
    return raw[:start] + written + raw[start + len(text) :]


def _code_span(text: str) -> str:
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    fence, space = "`" * (longest + 1), " " * (text[0] == "`" or text[-1] == "`")
    return fence + space + " ".join(text.split()) + space + fence
