"""JSON: parser, writer, and editor that changes only the necessary bytes."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from server.formats.differences import compare_lists
from server.formats.edits import REMOVE, Part, is_same_value, split_brackets
from server.formats.text_positions import Positions, line_start, newline_of, position_at
from server.formats.tree import MAX_DEPTH, MAX_DIGITS, Node, Plain, SyntaxProblem, Tree, depth_of
from server.formats.yaml.reader import read_yaml

# --- nodes ----------------------------------------------------------------------------------------

_SPACE = re.compile(r"[ \t\r\n]*")
_SCALAR = re.compile(r"[^,\]}\s]+")


def json_nodes(text: str) -> Node:
    return _json_value(text, _skip(text, 0), 0)[0]


def _skip(text: str, index: int) -> int:
    found = _SPACE.match(text, index)
    return found.end() if found else index


def _json_value(text: str, index: int, depth: int) -> tuple[Node, int]:
    if depth > 4 * MAX_DEPTH:
        raise SyntaxProblem("the values are nested too deeply", None, "use fewer levels")
    if text[index] == "{":
        return _json_collection(text, index, depth, "}")
    if text[index] == "[":
        return _json_collection(text, index, depth, "]")
    if text[index] == '"':
        value, end = json.decoder.scanstring(text, index + 1)  # type: ignore[attr-defined]
        return Node("scalar", index, end, '"', value), end
    found = _SCALAR.match(text, index)
    end = found.end() if found else index
    return Node("scalar", index, end, "", text[index:end]), end


def _json_collection(text: str, index: int, depth: int, closing: str) -> tuple[Node, int]:
    node = Node("map" if closing == "}" else "list", index, index, "flow")
    index = _skip(text, index + 1)
    while text[index] != closing:
        if closing == "}":
            key, index = _json_value(text, index, depth + 1)
            node.keys.append(key)
            index = _skip(text, _skip(text, index) + 1)
        item, index = _json_value(text, index, depth + 1)
        node.items.append(item)
        index = _skip(text, index)
        if text[index] == ",":
            index = _skip(text, index + 1)
    node.end = index + 1
    return node, node.end


# --- reader ---------------------------------------------------------------------------------------

# Matches strings, and the numbers for which Python's parser reports errors without a position.
_ODD_JSON = re.compile(rf'"(?:[^"\\]|\\.)*+"?|-?(?:NaN|Infinity|[0-9]{{{MAX_DIGITS + 1},}})', re.DOTALL)
# Matches strings, in linear time.
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# Matches strings, empty lists and objects, and the separators before values, in linear time.
_VALUES = re.compile(rf"{_STRING.pattern}|\[\s*+\]|\{{\s*+\}}|[\[{{,]", re.DOTALL)
# Also match strings, so that text inside them is not mistaken for a comment or a comma.
_COMMENTS = re.compile(rf"{_STRING.pattern}|//[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING_COMMAS = re.compile(rf"{_STRING.pattern}|,(?=\s*+[\]}}])", re.DOTALL)
# For text up to this length, values are counted without a limit, which is ten times as fast.
SHORT_CHARS = 64 * 1024

_ENDS = {"}": "object", "]": "list"}
# messages from Python's parser, and ours
_PROBLEMS = (
    ("Expecting value", "expected a value"),
    ("Expecting property name", "expected a key in double quotes"),
    ("Expecting ','", "expected a comma or a closing bracket"),
    ("Expecting ':'", "expected a colon"),
    ("Extra data", "unexpected characters after the value"),
    ("Unterminated string", "a string has no closing quote"),
    ("Invalid control", "a control character in a string must be escaped"),
    ("Invalid \\", "this escape does not exist in JSON"),
    ("Unexpected UTF-8 BOM", "the file must not begin with a byte order mark"),
)


def count_values(text: str, limit: float) -> int:
    """Count the values in a JSON text without parsing it. Stop at `limit` + 1."""
    if len(text) <= SHORT_CHARS:
        return int(min(_count_short(text), limit + 1))
    return _count_with_stop(text, limit)[0]


def count_values_of_string(text: str, limit: float) -> int:
    """Count the values in a string that may contain JSON. Stop at `limit` + 1.

    A string that is not JSON counts as one value.
    """
    count, end = _count_with_stop(text, limit)
    try:
        json.loads(text[:end])
    except json.JSONDecodeError as error:
        return count if error.pos >= end else 1
    except (ValueError, RecursionError):
        pass  # a very long number, or nested too deeply
    return count


def _count_short(text: str) -> int:
    text = "".join(_STRING.sub('"', text).split())
    separators = text.count(",") + text.count("[") + text.count("{")
    return 1 + separators - text.count("[]") - text.count("{}")


def _count_with_stop(text: str, limit: float) -> tuple[int, int]:
    count = 1
    for number, found in enumerate(_VALUES.finditer(text), start=1):
        if found.end() - found.start() == 1 and found[0] != '"':
            count += 1
        # In valid JSON, there are at most three matches for each value: its key, itself and a comma.
        if count > limit or number > 4 * limit:
            return max(count, int(limit) + 1), found.start()
    return count, len(text)


def read_json(text: str) -> Tree:
    """Parse JSON. Numbers with a fraction or an exponent stay text (`Plain`). Raises SyntaxProblem."""
    try:
        tree = json.loads(
            text, parse_float=Plain, parse_constant=_no_constant, object_pairs_hook=_unique_pairs
        )
        if "\\u" in text:
            json.dumps(tree, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise _not_json(error) from error
    except UnicodeEncodeError as error:
        raise SyntaxProblem(
            "half of a surrogate pair can't be encoded in UTF-8", None, "write both halves of the pair"
        ) from error
    except RecursionError as error:
        raise SyntaxProblem("the values are nested too deeply", None, "use fewer levels") from error
    except SyntaxProblem as problem:
        raise _with_position(problem, text) from problem
    except ValueError as error:
        what = f"a number must not have more than {MAX_DIGITS} digits"
        raise _with_position(SyntaxProblem(what, None, "put the number in quotes"), text) from error
    if text.count("[") + text.count("{") > MAX_DEPTH and depth_of(tree) > MAX_DEPTH:
        raise SyntaxProblem(
            f"the values are nested more than {MAX_DEPTH} levels deep", None, "use fewer levels"
        )
    return tree


def read_json_with_comments(text: str) -> Tree:
    """Parse JSON with comments and trailing commas. Raises SyntaxProblem."""
    without = _COMMENTS.sub(lambda found: found[0] if found[0][0] == '"' else " ", text)
    return read_json(_TRAILING_COMMAS.sub(lambda found: found[0] if found[0][0] == '"' else "", without))


def _not_json(error: json.JSONDecodeError) -> SyntaxProblem:
    text = error.doc
    what = next((told for said, told in _PROBLEMS if error.msg.startswith(said)), error.msg)
    line, column, _ = position_at(text, error.pos)
    comma = text.rfind(",", 0, error.pos)
    if text[error.pos : error.pos + 1] in _ENDS and comma >= 0 and not text[comma + 1 : error.pos].strip():
        what = f"a comma before the end of the {_ENDS[text[error.pos]]}"
        line, column, _ = position_at(text, comma)
    fix = "check the commas, quotes and brackets nearby"
    return SyntaxProblem(f"invalid JSON: {what} (column {column})", line, fix, column)


def _with_position(problem: SyntaxProblem, text: str) -> SyntaxProblem:
    # Python's parser reports no position for invalid numbers and duplicate keys.
    odd = next((found for found in _ODD_JSON.finditer(text) if found[0][0] != '"'), None)
    if odd:
        line, column, _ = position_at(text, odd.start())
        return SyntaxProblem(problem.message, line, problem.fix, column)
    try:
        json_positions(text)
    except SyntaxProblem as found:
        if found.message == problem.message:
            return found
    return problem


def json_positions(text: str) -> Positions:
    """Return the position of each key and list item in a JSON text. Raises SyntaxProblem."""
    positions: Positions = {}
    read_yaml(text.replace("\t", " "), positions)
    return positions


def _no_constant(name: str) -> Tree:
    raise SyntaxProblem(f"{name} is not allowed in JSON", None, "use null or a number")


def _unique_pairs(pairs: list[tuple[str, Tree]]) -> dict[str, Tree]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(key for key, count in Counter(key for key, _ in pairs).items() if count > 1)
        raise SyntaxProblem(f'the key "{twice}" occurs twice', None, "remove one of the two")
    return found


# --- writer ---------------------------------------------------------------------------------------

_NUMBER = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")


def json_text(
    value: Any,
    *,
    indent: str | None = None,
    ascii_only: bool = False,
    compact: bool = False,
    margin: str = "",
) -> str:
    """Return a value as JSON. Numbers keep all their digits.

    `indent` is the whitespace for one level; if it is None, the JSON is a single line. `margin` is the
    indentation of the value itself. If `compact` is set, spaces are left out.
    """
    if isinstance(value, Decimal):
        return format(value, "f")
    if type(value) is Plain and _NUMBER.fullmatch(value):
        return str(value)
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=ascii_only)
    if not isinstance(value, dict | list | tuple) or not value:
        return json.dumps(list(value) if isinstance(value, tuple) else value)
    inner = margin + (indent or "")
    options: Any = {"indent": indent, "ascii_only": ascii_only, "compact": compact, "margin": inner}
    if isinstance(value, dict):
        colon = ":" if compact else ": "
        parts = [
            json.dumps(k, ensure_ascii=ascii_only) + colon + json_text(v, **options) for k, v in value.items()
        ]
        opening, closing = "{}"
    else:
        parts = [json_text(item, **options) for item in value]
        opening, closing = "[]"
    if indent is None:
        return opening + ("," if compact else ", ").join(parts) + closing
    lines = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{lines}\n{margin}{closing}"


# --- edit -----------------------------------------------------------------------------------------

_INDENT = re.compile(r"\n([ \t]+)\S")


def edit_json(text: str, tree: Tree, changes: dict[str, Any]) -> str:
    """Change top-level keys in a JSON text. A key with the value REMOVE is removed."""
    root = json_nodes(text)
    found = _INDENT.search(text)
    compact = bool(root.keys) and text[root.keys[0].end : root.items[0].start] == ":"
    editor = _JsonEditor(text, found.group(1) if found else None, compact)
    return text[: root.start] + editor.update(root, tree, {**tree, **changes}) + text[root.end :]


class _JsonEditor:
    """Editor that keeps the style of a JSON text. If the text is not indented, `indent_unit` is None."""

    def __init__(self, text: str, indent_unit: str | None, compact: bool) -> None:
        self.text, self.indent_unit, self.compact = text, indent_unit, compact
        self.newline = newline_of(text)
        self.ascii_only = text.isascii() and "\\u" in text

    def update(self, node: Node, tree: Tree, value: Any) -> str:
        if is_same_value(tree, value):
            return self.text[node.start : node.end]
        if node.kind == "list" and isinstance(value, list | tuple):
            spans = [(item.start, item.end) for item in node.items]
        elif node.kind == "map" and isinstance(value, dict):
            spans = [(key.start, item.end) for key, item in zip(node.keys, node.items, strict=True)]
            value = {key: item for key, item in value.items() if item is not REMOVE}
        else:
            return self.render(value, node.start, "\n" in self.text[node.start : node.end] or not node.items)
        gap = "" if self.compact else " "
        found = split_brackets(self.text, node.start, node.end, spans, gap=gap, trailing_comma=False)
        if not found or not value:
            return self.render(value, node.start, not node.items)
        near = spans[-1][0]
        if node.kind == "list":
            multiline = found.is_multiline and all(map(self.is_long, node.items))
            return found.render(self.items(node, tree, list(value), near, multiline))
        return found.render(self.members(node, tree, value, near, found.is_multiline))

    def is_long(self, node: Node) -> bool:
        # Empty lists and objects count as long, because each item that is added to them gets its own line.
        return not node.items or "\n" in self.text[node.start : node.end]

    def items(
        self, node: Node, tree: list[Tree], value: list[Any], near: int, multiline: bool
    ) -> Iterator[Part]:
        for step in compare_lists(tree, value):
            if step.kind == "added":
                yield -1, self.render(step.new, near, multiline)
            elif step.kind == "changed":
                yield step.old, self.update(node.items[step.old], tree[step.old], step.new)
            elif step.kind == "removed":
                yield step.old, None
            elif step.kind != "moved_away":
                yield step.old, self.text[node.items[step.old].start : node.items[step.old].end]

    def members(
        self, node: Node, tree: dict[str, Tree], value: dict[str, Any], near: int, multiline: bool
    ) -> Iterator[Part]:
        for i, (key, item) in enumerate(zip(node.keys, node.items, strict=True)):
            if key.value not in value:
                yield i, None
            else:
                made = self.update(item, tree[key.value], value[key.value])
                yield i, self.text[key.start : item.start] + made
        colon = ":" if self.compact else ": "
        for name, new in value.items():
            if node.find(name) < 0:
                written = json_text(name, ascii_only=self.ascii_only)
                yield -1, written + colon + self.render(new, near, multiline)

    def render(self, value: Any, index: int, multiline: bool) -> str:
        line = self.text[line_start(self.text, index) :]
        indent = self.indent_unit if multiline else None
        text = json_text(
            value,
            indent=indent,
            ascii_only=self.ascii_only,
            compact=self.compact and indent is None,
            margin=line[: len(line) - len(line.lstrip(" \t"))],
        )
        return text.replace("\n", self.newline)
