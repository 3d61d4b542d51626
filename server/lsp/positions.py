"""Conversion between editor positions and Bifolio's positions.

Editors count lines and UTF-16 code units from 0, and Bifolio counts lines and characters from 1.
"""

import re
from bisect import bisect_right
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from server.lsp.protocol import Json

_LINE_END = re.compile(r"\r\n|\n|\r")
_MAX_UTF_16_CHAR = "\uffff"  # Later characters consist of two UTF-16 code units.

Span = tuple[int, int]  # (start, end); `end` is exclusive


class Text:
    """A text whose positions are counted as in editors: lines and UTF-16 columns, both from 0."""

    def __init__(self, value: str) -> None:
        self.value = value

    @cached_property
    def starts(self) -> list[int]:
        # Editors also end a line at a single \r.
        if "\r" in self.value:
            return [0, *(found.end() for found in _LINE_END.finditer(self.value))]
        starts, at = [0], self.value.find("\n") + 1
        while at:
            starts.append(at)
            at = self.value.find("\n", at) + 1
        return starts

    def line(self, number: int) -> str:
        end = self.starts[number + 1] if number + 1 < len(self.starts) else len(self.value)
        return self.value[self.starts[number] : end]

    def line_of(self, index: int) -> int:
        return bisect_right(self.starts, index) - 1

    def index_of_position(self, position: Any) -> int:
        """Convert an editor's position to an index.

        A position outside the text is converted to the nearest index.
        """
        line, units = _numbers(position)
        if line >= len(self.starts):
            return len(self.value)
        text = self.line(line)
        end = len(text.rstrip("\r\n"))
        if text.isascii() or text[:units].isascii():
            return self.starts[line] + min(units, end)
        at = 0
        while units > 0 and at < end:
            units -= 2 if text[at] > _MAX_UTF_16_CHAR else 1
            at += 1
        return self.starts[line] + at

    def position(self, index: int) -> Json:
        line = self.line_of(index)
        before = self.value[self.starts[line] : index]
        units = len(before) if before.isascii() else len(before) + sum(c > _MAX_UTF_16_CHAR for c in before)
        return {"line": line, "character": units}

    def range(self, span: Span) -> Json:
        return {"start": self.position(span[0]), "end": self.position(span[1])}

    def index_of_line(self, line: int | None, column: int | None) -> int:
        """Convert a line and a column, both counted from 1, to an index. Return 0 if `line` is None."""
        if line is None:
            return 0
        if "\r" not in self.value:
            start = self.starts[min(line, len(self.starts)) - 1]
        else:
            start = 0
            for _ in range(line - 1):
                start = self.value.find("\n", start) + 1 or len(self.value)
        end = self.value.find("\n", start)
        end = len(self.value) if end < 0 else end
        return min(start + (column or 1) - 1, end)


def _numbers(position: Any) -> tuple[int, int]:
    found = position if isinstance(position, dict) else {}
    line, character = found.get("line"), found.get("character")
    return (
        max(line, 0) if isinstance(line, int) else 0,
        max(character, 0) if isinstance(character, int) else 0,
    )


def apply_changes(text: str, changes: Any) -> str:
    """Apply the changes of a `textDocument/didChange` notification to a text."""
    for change in changes if isinstance(changes, list) else ():
        new = change.get("text") if isinstance(change, dict) else None
        if not isinstance(new, str):
            continue
        if not isinstance(change.get("range"), dict):
            text = without_surrogates(new)
            continue
        found = Text(text)
        start, end = (found.index_of_position(change["range"].get(key)) for key in ("start", "end"))
        text = text[: min(start, end)] + without_surrogates(new) + text[max(start, end) :]
    return text


def without_surrogates(text: str) -> str:
    # Replaces lone surrogates, which can't be encoded in UTF-8.
    if text.isascii():
        return text
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


def path_from_uri(uri: object) -> Path | None:
    """Return the path of a local file's URI, or None for other URIs."""
    try:
        parts = urlsplit(str(uri))
    except ValueError:
        return None
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        return None
    path = unquote(parts.path)
    return Path(path) if path.startswith("/") and "\0" not in path else None


def uri_of(path: Path) -> str:
    return "file://" + quote(str(path))
