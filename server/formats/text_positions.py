"""Positions in a text: lines, columns and character indexes."""

from dataclasses import dataclass, replace
from typing import NamedTuple

# --- lines ----------------------------------------------------------------------------------------


def newline_of(text: str) -> str:
    """Return a text's line ending, based on its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def line_start(text: str, at: int) -> int:
    """Return the start of the line that contains an index."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the end of the line that contains an index, before its line break."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """Return the start of the next line, or the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def comments_start(text: str, at: int, first: int = 0) -> int:
    """Return the start of the comment lines directly above the line that contains an index.

    If there are none, return the start of that line. Lines before the index `first` are not searched.
    """
    at = line_start(text, at)
    while at > first:
        above = line_start(text, at - 1)
        if above < first or not text[above:at].lstrip(" \t").startswith("#"):
            break
        at = above
    return at


# --- positions ------------------------------------------------------------------------------------

KeyPath = tuple[str | int, ...]


def attribute_path(path: KeyPath) -> str:
    """Return a dotted path without list indexes: `rows.code` for `("rows", 3, "code")`."""
    return ".".join(part for part in path if isinstance(part, str))


class Position(NamedTuple):
    """Start of a key or list item. `value` is the column of the key's scalar if it is on the same line, else
    0.
    """

    line: int
    column: int
    value: int = 0


Positions = dict[KeyPath, Position]


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A key that occurs several times in its mapping. Only the last value is used.

    `line` and `column` are the position of the earlier key, and `text` is its value if that is a scalar.
    `last_line` is the line of the last key.
    """

    at: KeyPath
    line: int
    column: int
    last_line: int
    text: str = ""

    def below(self, lines: int) -> "RepeatedKey":
        """Return the same key, shifted down by some lines."""
        return replace(self, line=self.line + lines, last_line=self.last_line + lines)


def position_at(text: str, index: int) -> Position:
    """Return the line and column of a character index."""
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def nearest(positions: Positions, at: KeyPath) -> Position | None:
    """Return the position of the value at a path, or of the nearest parent that has a position."""
    return next((positions[at[:end]] for end in range(len(at), 0, -1) if at[:end] in positions), None)


def line_and_column(position: Position | None) -> tuple[int | None, int | None]:
    """Return a value's line and column: its scalar's if it is on the same line as the key, else the key's."""
    return (position.line, position.value or position.column) if position else (None, None)
