"""Positions in a text: lines, columns and character indexes."""

from dataclasses import dataclass, replace
from typing import NamedTuple

# --- lines ----------------------------------------------------------------------------------------


def newline_of(text: str) -> str:
    """How a text ends its lines, judged by the first one."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def line_start(text: str, at: int) -> int:
    """Where the line around an index begins."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Where the line around an index ends, before its line break."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """Where the line after that around an index begins; the end of the text where there is none."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def comments_start(text: str, at: int, first: int = 0) -> int:
    """Where the comments right above the line around an index begin; that line itself where none are.

    Lines that begin before the index `first` are no comments, whatever they look like.
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
    """Return a path without the positions in its lists: `rows.code` for `("rows", 3, "code")`."""
    return ".".join(part for part in path if isinstance(part, str))


class Position(NamedTuple):
    """Where a key or a list's item begins; `value` is the column of a key's scalar on its line, else 0."""

    line: int
    column: int
    value: int = 0


Positions = dict[KeyPath, Position]


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """A key that its mapping has again further below, on `last_line`: only the last value counts.

    `line` and `column` are those of the earlier key, `text` is its value if that is a scalar.
    """

    at: KeyPath
    line: int
    column: int
    last_line: int
    text: str = ""

    def below(self, lines: int) -> "RepeatedKey":
        """The same key in a text that has some lines above this one."""
        return replace(self, line=self.line + lines, last_line=self.last_line + lines)


def position_at(text: str, index: int) -> Position:
    """The line and column of the character at an index."""
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def nearest(positions: Positions, at: KeyPath) -> Position | None:
    """The position of a value, or of the innermost one around it that has a position."""
    return next((positions[at[:end]] for end in range(len(at), 0, -1) if at[:end] in positions), None)


def line_and_column(position: Position | None) -> tuple[int | None, int | None]:
    """The line and column of a value: of its scalar where that is on the line of its key."""
    return (position.line, position.value or position.column) if position else (None, None)
