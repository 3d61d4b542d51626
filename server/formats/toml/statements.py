"""Parser for the statements in a TOML text that tomllib has already accepted."""

import re
import tomllib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from server.formats.text_positions import DuplicateKey, KeyPath, Position, Positions

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_PART = re.compile(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|[A-Za-z0-9_-]+')
_DOT = re.compile(r"[ \t]*\.[ \t]*")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_SCALAR = re.compile(
    r'"""(?:\\[\s\S]|[^\\])*?"{3,5}'
    r"|'''[\s\S]*?'{3,5}"
    r'|"(?:\\.|[^"\\\n])*"'
    r"|'[^'\n]*'"
    r"|[^,\]}#\r\n]+?(?=[ \t]*(?:[,\]}#\r\n]|\Z))"  # spaces only between a date and its time
)
_NOT_NEWLINE = re.compile(r"[^\r\n]")


@dataclass(slots=True)
class Value:
    """A value in a TOML text, from index `start` to `end` (exclusive)."""

    kind: Literal["scalar", "array", "table"]
    start: int
    end: int
    entries: list["Entry"] = field(default_factory=list)


@dataclass(slots=True)
class Entry:
    """A key with its value in an inline table, or an item of an array. `path` is relative to the table or
    array.
    """

    path: KeyPath
    start: int
    value: Value


@dataclass(slots=True)
class Statement:
    """A key with its value, or the header of a table. In a header, `value` is None.

    `table` is the path of the table to which the statement belongs, including indexes in arrays of tables.
    """

    path: KeyPath
    start: int
    end: int
    value: Value | None
    table: KeyPath


def parse_statements(text: str) -> list[Statement]:
    """Return the statements in a TOML text."""
    found: list[Statement] = []
    lengths: dict[KeyPath, int] = {}  # lengths of arrays of tables, by path
    table: KeyPath = ()
    at = _skip(text, 0)
    while at < len(text):
        start = at
        if text[at] == "[":
            listed = text[at + 1] == "["
            at = _skip(text, at + 1 + listed)
            keys, at = _parse_dotted_key(text, at)
            at = text.index("]", at) + 1 + listed
            table = _table(keys, lengths, listed=listed)
            found.append(Statement(table, start, at, None, table))
        else:
            keys, at = _parse_dotted_key(text, at)
            value = _value(text, _after(_EQUALS, text, at))
            at = value.end
            found.append(Statement((*table, *keys), start, at, value, table))
        at = _skip(text, at)
    return found


def _table(keys: KeyPath, lengths: dict[KeyPath, int], *, listed: bool) -> KeyPath:
    path: KeyPath = ()
    for i, key in enumerate(keys):
        path = (*path, key)
        if listed and i == len(keys) - 1:
            lengths[path] = lengths.get(path, 0) + 1
        if path in lengths:
            path = (*path, lengths[path] - 1)
    return path


def _parse_dotted_key(text: str, index: int) -> tuple[KeyPath, int]:
    parts = []
    while part := _PART.match(text, index):
        parts.append(_key(part[0]))
        index = part.end()
        dot = _DOT.match(text, index)
        if not dot:
            break
        index = dot.end()
    return tuple(parts), index


def key_spans(text: str, index: int) -> list[tuple[int, int]]:
    """Return the start and end of each part of the dotted key or table header at `index`."""
    while text[index] in "[ \t":  # a table header
        index += 1
    spans = []
    while part := _PART.match(text, index):
        spans.append(part.span())
        dot = _DOT.match(text, part.end())
        if not dot:
            break
        index = dot.end()
    return spans


def _key(written: str) -> str:
    return written if written[0] not in "\"'" else next(iter(tomllib.loads(f"{written} = 0")))


def _value(text: str, index: int) -> Value:
    if text[index] == "[":
        return _array(text, index)
    if text[index] == "{":
        return _inline_table(text, index)
    return Value("scalar", index, _after(_SCALAR, text, index))


def _array(text: str, index: int) -> Value:
    made = Value("array", index, index)
    index = _skip(text, index + 1)
    while text[index] != "]":
        item = _value(text, index)
        made.entries.append(Entry((len(made.entries),), index, item))
        index = _skip(text, item.end)
        if text[index] == ",":
            index = _skip(text, index + 1)
    made.end = index + 1
    return made


def _inline_table(text: str, index: int) -> Value:
    made = Value("table", index, index)
    index = _skip(text, index + 1)
    while text[index] != "}":
        start = index
        keys, index = _parse_dotted_key(text, index)
        item = _value(text, _after(_EQUALS, text, index))
        made.entries.append(Entry(keys, start, item))
        index = _skip(text, item.end)
        if text[index] == ",":
            index = _skip(text, index + 1)
    made.end = index + 1
    return made


def _skip(text: str, index: int) -> int:
    # skips white space and comments
    return _after(_BLANK, text, index)


def _after(pattern: re.Pattern[str], text: str, index: int) -> int:
    found = pattern.match(text, index)
    return found.end() if found else index


def first_duplicate_of_last(text: str) -> Statement | None:
    """Return the first statement that has the same key as the last statement, or None if the key is new.

    The text must end after the value that tomllib has rejected.
    """
    try:
        *earlier, last = parse_statements(text)
    # tomllib has rejected the text for a different reason, inside a statement.
    except (ValueError, IndexError):
        return None
    duplicates = [s for s in earlier if s.value and (s.path, s.table) == (last.path, last.table)]
    return duplicates[0] if duplicates and last.value and last.end == len(text) else None


def blanked(text: str, statement: Statement) -> str:
    # Replacing the statement with spaces does not change any other positions.
    gone = _NOT_NEWLINE.sub(" ", text[statement.start : statement.end])
    return text[: statement.start] + gone + text[statement.end :]


def describe_duplicate_key(text: str, statement: Statement, end: int) -> DuplicateKey:
    """Describe `statement` as a DuplicateKey. The value of the key's last occurrence ends at `end`."""
    line = text.count("\n", 0, statement.start) + 1
    column = statement.start - text.rfind("\n", 0, statement.start)
    last = [s for s in parse_statements(text[:end]) if s.path == statement.path][-1]
    value = statement.value
    written = text[value.start : value.end] if value and value.kind == "scalar" else ""
    return DuplicateKey(statement.path, line, column, text.count("\n", 0, last.start) + 1, written)


def toml_positions(text: str) -> Positions:
    """Return the position of each key and list item in a TOML text."""
    lines = [0, *(found.end() for found in re.finditer("\n", text))]
    positions: Positions = {}
    for path, start, value in _all_values(text):
        line = bisect_right(lines, start)
        column = 0
        if value is not None and path and not isinstance(path[-1], int) and value.kind == "scalar":
            column = value.start - lines[line - 1] + 1
        for end in range(1, len(path)):  # The tables that a dotted key creates start at the key.
            positions.setdefault(path[:end], Position(line, start - lines[line - 1] + 1))
        positions[path] = Position(line, start - lines[line - 1] + 1, column)
    return positions


def _all_values(text: str) -> Iterator[tuple[KeyPath, int, Value | None]]:
    for statement in parse_statements(text):
        yield statement.path, statement.start, statement.value
        waiting = [(statement.path, statement.value)] if statement.value else []
        while waiting:
            above, value = waiting.pop()
            for entry in value.entries:
                path = (*above, *entry.path)
                yield path, entry.start, entry.value
                waiting.append((path, entry.value))
