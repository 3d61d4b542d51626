"""Scanner for JSON, and for YAML and TOML values in brackets. The text may be incomplete."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from server.formats.text_positions import KeyPath, next_line
from server.formats.tree import MAX_DEPTH
from server.lsp.positions import Span

_TOKEN = re.compile(
    r"""(?P<space>[\s\ufeff]+|\#[^\n]*)
    |(?P<quoted>"(?:\\.|[^"\\\n])*"?|'(?:''|[^'\n])*'?)
    |(?P<mark>[{}\[\],=]|:(?=[\s"'{\[,}\]]|\Z))
    |(?P<plain>(?:[^\s{}\[\],:\#"'=]|:(?![\s,\]}]|\Z))(?:[^{}\[\],:\#\n=]|:(?![\s,\]}]|\Z)|(?<=\S)\#)*)
    |(?P<other>.)""",
    re.VERBOSE,
)
# A line that can't be part of the brackets above it: it begins with a dash or a key.
_AFTER_BRACKETS = re.compile(r"( *)(?:-(?:\s|\Z)|[^\s#\"'\[\]{},][^:\n]*:(?:\s|\Z))")


@dataclass(frozen=True, slots=True)
class Node:
    """A key or a list item in a text.

    The spans do not include quotation marks. `value` is None for a mapping, a list or a missing value.
    `depth` is the column of a key in block style, or -1 for a key in brackets.
    """

    path: KeyPath
    key: Span
    value: Span | None = None
    depth: int = -1


@dataclass(slots=True)
class Container:
    """A bracket that has not been closed yet.

    `expects` tells what must come next: "key", "colon", "value" or "comma". `slot` is the key or index of the
    next value.
    """

    is_mapping: bool
    path: KeyPath
    expects: str
    slot: str | int = 0
    key: Span = (0, 0)
    keys: set[str] = field(default_factory=set)

    @property
    def inner(self) -> KeyPath:
        return (*self.path, self.slot)


@dataclass(slots=True)
class Flow:
    """The result of scanning a value in brackets. If `is_too_deep` is set, `nodes` is empty."""

    nodes: list[Node]
    open: list[Container]
    end: int
    last_token: Span | None = None
    quote: str = ""
    is_too_deep: bool = False


def scan_flow(text: str, start: int, end: int, path: KeyPath, column: int | None = None) -> Flow:
    """Scan the value in brackets that begins at index `start`.

    If the closing bracket is missing, the value ends before the next key or list item that is not indented
    further than `column`.
    """
    flow = Flow([], [], start)
    for found in _tokens(text, start, end):
        flow.end = found.end()
        line = text.rfind("\n", found.start(), found.end()) + 1
        if line and column is not None and _is_outside(text, line, column):
            flow.end, flow.last_token, flow.quote = line, None, ""
            break
        if found.lastgroup in ("space", "other"):
            flow.last_token, flow.quote = None, ""
        elif found.lastgroup == "mark":
            flow.last_token, flow.quote = None, ""
            _mark(flow, found[0], path, found.start())
        else:
            _scalar(flow, text, found)
        if not flow.open:
            break
        # Limit the depth, because the total length of all paths grows with the square of the depth.
        if len(path) + len(flow.open) > MAX_DEPTH:
            return Flow([], [], end, is_too_deep=True)
    if flow.last_token is not None and flow.end < end:
        flow.last_token, flow.quote = None, ""
    return flow


def _is_outside(text: str, line: int, column: int) -> bool:
    after = _AFTER_BRACKETS.match(text, line, next_line(text, line))
    return after is not None and len(after[1]) <= column


def _tokens(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    at = start
    while at < end and (found := _TOKEN.match(text, at, end)):
        yield found
        at = found.end()


def _mark(flow: Flow, mark: str, path: KeyPath, index: int) -> None:
    top = flow.open[-1] if flow.open else None
    if mark in "{[":
        inner = top.inner if top else path
        if top is not None:
            flow.nodes.append(Node(inner, (index, index + 1) if not top.is_mapping else top.key))
            top.expects = "comma"
        flow.open.append(Container(mark == "{", inner, "key" if mark == "{" else "value"))
    elif top is None:
        return
    elif mark in "}]":
        flow.open.pop()
    elif mark == ",":
        top.expects = "key" if top.is_mapping else "value"
        if isinstance(top.slot, int) and not top.is_mapping:
            top.slot += 1
    elif top.is_mapping:
        top.expects = "value"


def _scalar(flow: Flow, text: str, match: re.Match[str]) -> None:
    top = flow.open[-1] if flow.open else None
    quote = match[0][0] if match.lastgroup == "quoted" else ""
    closed = bool(quote) and len(match[0]) > 1 and match[0].endswith(quote)
    begin = match.start() + bool(quote)
    end = match.start() + len(match[0].rstrip()) - closed
    flow.last_token, flow.quote = (begin, end), quote
    if closed or (not quote and match[0] != match[0].rstrip()):
        flow.last_token = None
    if top is None:
        return
    if top.is_mapping and top.expects in ("key", "comma", "colon"):
        name = decode_scalar(text[begin:end], quote)
        top.slot, top.key, top.expects = name, (begin, end), "colon"
        top.keys.add(name)
        return
    node = Node(top.inner, top.key if top.is_mapping else (begin, end), (begin, end))
    flow.nodes.append(node)
    top.expects = "comma"


def decode_scalar(text: str, quote: str) -> str:
    """Decode the text of a scalar. `quote` is the quotation mark around the text, or "" if there is none."""
    if quote == '"' and "\\" in text:
        try:
            return str(json.loads(f'"{text}"'))
        except ValueError:
            return text
    return text.replace("''", "'") if quote == "'" else text
