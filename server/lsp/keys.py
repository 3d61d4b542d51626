"""Scanner for document files that may be incomplete.

The parsers in `server.formats` would reject such files.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from server.documents.path_rules import MARKDOWN
from server.formats.text_positions import KeyPath, line_end, next_line
from server.formats.tree import MAX_DEPTH
from server.lsp.flow import Container, Flow, Node, decode_scalar, scan_flow
from server.lsp.positions import Span

MAX_SCANNED_CHARS = 2_000_000  # In a longer text, there are no completions, outline or links.
_FENCE = re.compile(r"(?:[ \t]*\r?\n)*(---|\+\+\+)[ \t]*(?:\r?\n|\Z)")
_YAML_KEY = re.compile(
    r"""("(?:\\.|[^"\\])*"|'(?:''|[^'])*'|[^\s"'\[\]{},\#&*!|>%@`-](?:[^:\#]*[^:\# \t])?"""
    r"|-[^\s:](?:[^:\#]*[^:\# \t])?)[ \t]*:(?=\s|\Z)"
)
_FLOW_KEY = re.compile(r"[\w.-]+(?=[ \t]*[:=])")
_TOML_KEY = re.compile(r"""[ \t]*("(?:\\.|[^"\\])*"|'[^']*'|[A-Za-z0-9_.-]+)[ \t]*=[ \t]*""")
_TOML_TABLE = re.compile(r"[ \t]*(\[\[?)[ \t]*+((?:[^\]\n]*[^\]\n \t])?)[ \t]*+(\]\]?|$)")


# --- regions --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Region:
    """The part of a file that contains keys.

    `body` is the index at which the Markdown body starts. For a file without a body, it is the
    length of the text or greater.
    """

    style: str
    start: int
    end: int
    body: int


def find_region(path: str, text: str) -> Region:
    """Return the part of a document file that contains keys."""

    # Front matter without a closing line extends to the end, because the line may not have been typed yet.
    if not path.endswith(MARKDOWN):
        style = "json" if path.endswith(".json") else "toml" if path.endswith(".toml") else "yaml"
        return Region(style, 0, len(text), len(text))
    fence = _FENCE.match(text)
    if fence:
        marks = re.escape(fence[1]) + (r"|\.\.\." if fence[1] == "---" else "")
        closing = re.compile(rf"^(?:{marks})[ \t]*(?:\r?\n|\Z)", re.M).search(text, fence.end())
        end, body = (closing.start(), closing.end()) if closing else (len(text), len(text) + 1)
        return Region("yaml" if fence[1] == "---" else "toml", fence.end(), end, body)
    if text.lstrip().startswith("{"):
        start = text.index("{")
        end = scan_flow(text, start, len(text), ()).end
        return Region("json", start, end, end)
    return Region("yaml", 0, 0, 0)


# --- nodes ----------------------------------------------------------------------------------------


def scan_nodes(path: str, text: str) -> list[Node]:
    """Return the keys and list items of a file, in their order in the file.

    Return [] if the file is too long or nested too deeply.
    """
    if len(text) > MAX_SCANNED_CHARS:
        region = find_region(path, text)
        if region.end - region.start > MAX_SCANNED_CHARS:
            return []
    region = find_region(path, text)
    if region.style == "json":
        start = text.find("{", region.start, region.end)
        return scan_flow(text, start, region.end, ()).nodes if start >= 0 else []
    scanner = _scanner(region, text)
    for start, _ in _lines(text, region.start, region.end):
        scanner.feed(start)
        if scanner.is_too_deep:
            return []
    return scanner.nodes


def _lines(text: str, start: int, end: int) -> Iterator[Span]:
    while start < end:
        after = next_line(text, start)
        yield start, after
        if after <= start:
            return
        start = after


def _scanner(region: Region, text: str) -> "_YamlScanner | _TomlScanner":
    return _TomlScanner(text, region.end) if region.style == "toml" else _YamlScanner(text, region.end)


@dataclass(slots=True)
class _Level:
    """A key or list item that contains the current line."""

    column: float
    key: str | int
    last_item: int = -1


@dataclass(slots=True)
class _YamlScanner:
    """Scanner of block-style YAML."""

    text: str
    end: int
    nodes: list[Node] = field(default_factory=list)
    stack: list[_Level] = field(default_factory=list)
    root: _Level = field(default_factory=lambda: _Level(-1, ""))
    block: int | None = None  # column of the key of an unfinished block of text
    flow: tuple[int, KeyPath] | None = None  # start and path of the last key's brackets
    skip: int = 0  # index after the last key's brackets
    is_too_deep: bool = False  # more than MAX_DEPTH levels

    @property
    def path(self) -> KeyPath:
        return tuple(level.key for level in self.stack)

    def feed(self, start: int) -> None:
        if start < self.skip:
            return
        end = min(line_end(self.text, start), self.end)
        line = self.text[start:end]
        content = line.lstrip(" ")
        indent = len(line) - len(content)
        if self.is_in_block(content, indent) or not content or content[0] == "#":
            return
        self.flow = None
        at, is_item = self.enter_items(start + indent, start, end)
        found = _YAML_KEY.match(self.text, at, end)
        if found:
            self._enter_key(found, at - start)
            self._value(found.end(), start, end, at - start)
        elif is_item or self.text[at] in "[{":
            if not is_item:
                self.leave(at - start)
            self._value(at, start, end, at - start)

    def is_in_block(self, content: str, indent: int) -> bool:
        if self.block is not None and (not content.strip() or indent > self.block):
            return True
        self.block = None
        return False

    def enter_items(self, index: int, start: int, end: int) -> tuple[int, bool]:
        """Enter the list items whose dashes begin at `index`. For example, `- - x` contains two.

        Return the index after the dashes, and whether there were any.
        """
        is_item = False
        while (
            self.text[index : index + 1] == "-" and self.text[index + 1 : min(index + 2, end)].strip() == ""
        ):
            self.leave(index - start + 0.5)
            parent = self.stack[-1] if self.stack else self.root
            parent.last_item += 1
            self.enter(_Level(index - start + 0.5, parent.last_item))
            if self.is_too_deep:
                return index, False
            self.nodes.append(Node(self.path, (index, index + 1), None, index - start))
            is_item = True
            index += 1
            while index < end and self.text[index] == " ":
                index += 1
        return index, is_item

    def leave(self, column: float) -> None:
        while self.stack and self.stack[-1].column >= column:
            self.stack.pop()

    def enter(self, level: _Level) -> None:
        self.stack.append(level)
        self.is_too_deep = self.is_too_deep or len(self.stack) > MAX_DEPTH

    def _enter_key(self, match: re.Match[str], column: int) -> None:
        self.leave(column)
        quote = match[1][0] if match[1][0] in "\"'" else ""
        span = (match.start(1) + bool(quote), match.end(1) - bool(quote))
        self.enter(_Level(column, decode_scalar(self.text[slice(*span)], quote)))
        self.nodes.append(Node(self.path, span, None, column))

    def _value(self, index: int, start: int, end: int, column: int) -> None:
        while index < end and self.text[index] in " \t":
            index += 1
        first = self.text[index : min(index + 1, end)]
        if first in ("|", ">"):
            self.block = int(self.stack[-1].column) if self.stack else column
        elif first in ("[", "{"):
            flow = scan_flow(self.text, index, self.end, self.path, column)
            self.is_too_deep = self.is_too_deep or flow.is_too_deep
            self.nodes += flow.nodes
            self.flow = index, self.path
            self.skip = flow.end
        elif first not in ("", "#", "&", "*", "!"):
            span, _ = _scalar_span(self.text, index, end)
            last = self.nodes[-1]
            self.nodes[-1] = Node(last.path, last.key, span, last.depth)


@dataclass(slots=True)
class _TomlScanner:
    """Scanner for TOML. `base` is the path of the current table."""

    text: str
    end: int
    nodes: list[Node] = field(default_factory=list)
    base: KeyPath = ()
    counts: dict[KeyPath, int] = field(default_factory=dict)
    flow: tuple[int, KeyPath] | None = None
    skip: int = 0
    is_too_deep: bool = False

    @property
    def path(self) -> KeyPath:
        return self.base

    def feed(self, start: int) -> None:
        if start < self.skip:
            return
        end = min(line_end(self.text, start), self.end)
        self.flow = None
        if table := _TOML_TABLE.fullmatch(self.text[start:end].partition("#")[0].rstrip()):
            self._enter_table(table, start)
        elif key := _TOML_KEY.match(self.text, start, end):
            path = (*self.base, *_toml_names(key[1]))
            self.is_too_deep = len(path) > MAX_DEPTH
            self.nodes.append(Node(path, (key.start(1), key.end(1)), None, 0))
            self._value(key.end(), end, path)

    def _enter_table(self, table: re.Match[str], start: int) -> None:
        path: KeyPath = ()
        names = _toml_names(table[2])
        if len(names) > MAX_DEPTH:
            self.is_too_deep = True
            return
        if not names:  # The name has not been typed yet.
            self.base = ()
            return
        for name in names:
            path = (*path, name)
            if path in self.counts and not (table[1] == "[[" and len(path) == table[2].count(".") + 1):
                path = (*path, self.counts[path])
        span = (start + table.start(2), start + table.end(2))
        if table[1] == "[[":
            self.counts[path] = self.counts.get(path, -1) + 1
            if not self.counts[path]:
                self.nodes.append(Node(path, span, None, 0))
            path = (*path, self.counts[path])
        self.base = path
        self.nodes.append(Node(path, span, None, 0))

    def _value(self, index: int, end: int, path: KeyPath) -> None:
        first = self.text[index : min(index + 1, end)]
        if self.text.startswith(('"""', "'''"), index):
            closing = self.text.find(self.text[index : index + 3], index + 3)
            self.skip = closing if closing >= 0 else self.end
        elif first in ("[", "{"):
            flow = scan_flow(self.text, index, self.end, path)
            self.is_too_deep = self.is_too_deep or flow.is_too_deep
            self.nodes += flow.nodes
            self.flow = index, path
            self.skip = 0 if flow.open else flow.end
        elif first:
            last = self.nodes[-1]
            self.nodes[-1] = Node(last.path, last.key, _scalar_span(self.text, index, end)[0], last.depth)


def _toml_names(text: str) -> list[str]:
    return [part.strip(" \t\"'") for part in re.findall(r"\"[^\"]*\"|'[^']*'|[^.]+", text)]


def _scalar_span(text: str, index: int, end: int) -> tuple[Span, str]:
    quote = text[index] if text[index] in "\"'" else ""
    if quote:
        pattern = r'"((?:\\.|[^"\\])*)' if quote == '"' else r"'((?:''|[^'])*)"
        found = re.compile(pattern).match(text, index, end)
        return ((found.start(1), found.end(1)) if found else (index, end)), quote
    comment = re.compile(r"\s#").search(text, index, end)
    stop = comment.start() if comment else end
    return (index, index + len(text[index:stop].rstrip())), ""


# --- cursor ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cursor:
    """The cursor's position among the keys and values of a file.

    - `role`: "key", "value", "body" (in Markdown) or "item" (after a dash)
    - `span`: the span of the text that a completion replaces
    - `prefix`: the part of that text before the cursor
    - `style`: "yaml", "flow" (in brackets), "json" or "toml"
    """

    role: str
    path: KeyPath
    span: Span
    prefix: str = ""
    style: str = "yaml"
    quote: str = ""
    indent: int = 0
    is_followed: bool = False


def cursor_at(path: str, text: str, index: int) -> Cursor | None:
    """Locate the cursor among the keys of a file. Return None if nothing can be completed there."""
    region = find_region(path, text)
    if index >= region.body and path.endswith(MARKDOWN) and region.body:
        return Cursor("body", (), (index, index))
    if not region.start <= index <= region.end or region.end - region.start > MAX_SCANNED_CHARS:
        return Cursor("body", (), (index, index)) if path.endswith(MARKDOWN) else None
    if region.style == "json":
        start = text.find("{", region.start, index)
        return _flow_cursor(text, scan_flow(text, start, index, ()), index, "json") if start >= 0 else None
    scanner = _scanner(region, text)
    start = text.rfind("\n", region.start, index) + 1 or region.start
    for line, _ in _lines(text, region.start, start):
        scanner.feed(line)
        if scanner.is_too_deep:
            return None
    if scanner.flow and (start < scanner.skip or not scanner.skip):
        begin, keys = scanner.flow
        flow = scan_flow(text, begin, index, keys)
        if flow.open:
            return _flow_cursor(text, flow, index, "flow")
    if isinstance(scanner, _TomlScanner):
        return _toml_cursor(text, scanner, start, index, region.end)
    return _yaml_cursor(text, scanner, start, index, region.end)


def _yaml_cursor(text: str, scanner: _YamlScanner, start: int, index: int, end: int) -> Cursor | None:
    stop = min(line_end(text, index), end)
    line = text[start:index]
    content = line.lstrip(" ")
    if scanner.is_in_block(content or "x", len(line) - len(content)) or content.startswith("#"):
        return None
    at, is_item = scanner.enter_items(start + len(line) - len(content), start, index)
    if scanner.is_too_deep:
        return None
    at = min(at, index)
    found = _YAML_KEY.match(text, at, index)
    if found:
        scanner.leave(at - start)
        quoted = found[1][0] in "\"'"
        name = decode_scalar(found[1][1:-1] if quoted else found[1], found[1][0] if quoted else "")
        path = (*scanner.path, name)
        return _value_cursor(text, path, found.end(), (index, stop), at - start, "yaml")
    if not is_item:
        scanner.leave(at - start)
    if text[at:index].startswith(("[", "{")):
        return _flow_cursor(text, scan_flow(text, at, index, scanner.path), index, "flow")
    after = _YAML_KEY.match(text, at, stop)
    word_end = after.end(1) if after else at + len(text[at:stop].partition(" #")[0].rstrip())
    quote = text[at : at + 1] if text[at : at + 1] in ("'", '"') and at < index else ""
    begin = at + len(quote)
    word_end = max(word_end - (len(quote) if text[at + 1 : word_end].endswith(quote or "\0") else 0), index)
    role = "item" if is_item else "key"
    prefix = text[begin:index]
    return Cursor(role, scanner.path, (begin, word_end), prefix, "yaml", quote, at - start, after is not None)


def _value_cursor(
    text: str, path: KeyPath, at: int, ends: tuple[int, int], indent: int, style: str
) -> Cursor | None:
    # `ends` contains the index of the cursor and the end of the line.
    index, stop = ends
    while at < index and text[at] in " \t":
        at += 1
    if text[at:index].startswith(("[", "{")):
        return _flow_cursor(text, scan_flow(text, at, index, path), index, "flow")
    if text[at:index].startswith(("|", ">")) or re.search(r"\s#", text[at:index]):
        return None
    if at >= stop or text[at:stop].lstrip().startswith("#"):
        return Cursor("value", path, (index, index), "", style, "", indent)
    span, quote = _scalar_span(text, at, stop)
    if index < span[0]:
        return None
    return Cursor("value", path, (span[0], max(span[1], index)), text[span[0] : index], style, quote, indent)


def _toml_cursor(text: str, scanner: _TomlScanner, start: int, index: int, end: int) -> Cursor | None:
    stop = min(line_end(text, index), end)
    found = _TOML_KEY.match(text, start, index)
    if found:
        path = (*scanner.path, *_toml_names(found[1]))
        return _value_cursor(text, path, found.end(), (index, stop), 0, "toml")
    line = text[start:index]
    if line.lstrip().startswith(("#", "[")):
        return None
    at = start + len(line) - len(line.lstrip())
    after = _TOML_KEY.match(text, at, stop)
    word_end = after.end(1) if after else index
    return Cursor("key", scanner.path, (at, word_end), text[at:index], "toml", "", 0, after is not None)


def _flow_cursor(text: str, flow: Flow, index: int, style: str) -> Cursor | None:
    if not flow.open:
        return None
    top: Container = flow.open[-1]
    begin, quote = (flow.last_token[0], flow.quote) if flow.last_token else (index, "")
    stop = index
    ends = quote or r",\]\}\n#" + (":" if top.is_mapping else "")
    tail = re.compile(rf"[^{ends}\n]*").match(text, index)
    if tail and (quote or flow.last_token):
        stop = index + len(tail[0] if quote else tail[0].rstrip())
    is_key = top.is_mapping and top.expects in ("key", "colon")
    if is_key and not flow.last_token and (word := _FLOW_KEY.match(text, index)):
        stop = word.end()
    followed = bool(re.compile(r"[\"']?[ \t]*[:=]").match(text, stop))
    path = top.path if is_key else top.inner
    if not is_key and top.is_mapping and top.expects == "comma" and not flow.last_token:
        return None
    return Cursor(
        "key" if is_key else "value", path, (begin, stop), text[begin:index], style, quote, 0, followed
    )


def sibling_keys(nodes: list[Node], cursor: Cursor) -> set[str]:
    """Return the keys that are in the same mapping as the cursor, except the key at the cursor."""
    return {
        str(node.path[-1])
        for node in nodes
        if node.path[:-1] == cursor.path
        and isinstance(node.path[-1], str)
        and not cursor.span[0] <= node.key[0] <= cursor.span[1]
    }
