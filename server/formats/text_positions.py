"""Positions of lines, comments, keys and values in a text."""

from dataclasses import dataclass, replace
from typing import NamedTuple

# --- lines ----------------------------------------------------------------------------------------


def newline_of(text: str) -> str:
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def line_start(text: str, index: int) -> int:
    return text.rfind("\n", 0, index) + 1


def line_end(text: str, index: int) -> int:
    """Return the index at which the line that contains `index` ends, before its line break."""
    end = text.find("\n", index)
    end = len(text) if end < 0 else end
    return end - 1 if end > index and text[end - 1] == "\r" else end


def next_line(text: str, index: int) -> int:
    end = text.find("\n", index)
    return len(text) if end < 0 else end + 1


def comments_start(text: str, index: int, lower_limit: int = 0) -> int:
    """Return the start of the comments above the line at `index`, or of the line itself if there are none.

    Comments before `lower_limit` are ignored.
    """
    index = line_start(text, index)
    while index > lower_limit:
        above = line_start(text, index - 1)
        if above < lower_limit or not text[above:index].lstrip(" \t").startswith("#"):
            break
        index = above
    return index


# --- positions ------------------------------------------------------------------------------------

KeyPath = tuple[str | int, ...]


def attribute_path(path: KeyPath) -> str:
    """Return a path without list indexes: `rows.code` for `("rows", 3, "code")`."""
    return ".".join(part for part in path if isinstance(part, str))


class Position(NamedTuple):
    """Line and column of a key or list item. Both start at 1.

    `value_column` is the column of the key's value if it is a scalar on the same line, and otherwise 0.
    """

    line: int
    column: int
    value_column: int = 0


Positions = dict[KeyPath, Position]


@dataclass(frozen=True, slots=True)
class DuplicateKey:
    """An occurrence of a duplicate key that is overridden by a later occurrence.

    `last_line` is the line of the last occurrence. If the overridden value is a scalar, `text` is that value.
    """

    path: KeyPath
    line: int
    column: int
    last_line: int
    text: str = ""

    def below(self, lines: int) -> "DuplicateKey":
        return replace(self, line=self.line + lines, last_line=self.last_line + lines)


def position_at(text: str, index: int) -> Position:
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def nearest_position(positions: Positions, key_path: KeyPath) -> Position | None:
    return next(
        (positions[key_path[:end]] for end in range(len(key_path), 0, -1) if key_path[:end] in positions),
        None,
    )


def line_and_column(position: Position | None) -> tuple[int | None, int | None]:
    # Mappings, lists, and values on a line below their key have no column of their own.
    return (position.line, position.value_column or position.column) if position else (None, None)
