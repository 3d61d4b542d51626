"""Positions in a text: line numbers, columns and character indexes."""

from dataclasses import dataclass, replace
from typing import NamedTuple

# --- lines ----------------------------------------------------------------------------------------


def newline_of(text: str) -> str:
    """Return the line ending that a text uses, as found in its first line."""
    end = text.find("\n")
    return "\r\n" if end > 0 and text[end - 1] == "\r" else "\n"


def line_start(text: str, at: int) -> int:
    """Return the index at which the line that contains index `at` starts."""
    return text.rfind("\n", 0, at) + 1


def line_end(text: str, at: int) -> int:
    """Return the index at which the line that contains index `at` ends, before the line break."""
    end = text.find("\n", at)
    end = len(text) if end < 0 else end
    return end - 1 if end > at and text[end - 1] == "\r" else end


def next_line(text: str, at: int) -> int:
    """Return the index at which the line after index `at` starts, or the end of the text."""
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def comments_start(text: str, at: int, first: int = 0) -> int:
    """Return the index at which the comment lines start that are directly above the line with index `at`.

    If there are no such comment lines, return the start of the line. The text before index `first` is not
    searched.
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
    """Return the path of keys and list indexes as a string with dots, without the list indexes.

    For example, `("rows", 3, "code")` becomes `rows.code`.
    """
    return ".".join(part for part in path if isinstance(part, str))


class Position(NamedTuple):
    """Line and column of a key or list item, both counted from 1.

    `value` is the column of the key's value if it is on the same line and is neither a mapping nor a list.
    Otherwise it is 0.
    """

    line: int
    column: int
    value: int = 0


Positions = dict[KeyPath, Position]


@dataclass(frozen=True, slots=True)
class RepeatedKey:
    """An earlier occurrence of a key that occurs several times in the same mapping. Its value is ignored,
    because only the key's last value is used.

    `line` and `column` are the position of this occurrence. `text` is its value, unless the value is a
    mapping or list. `last_line` is the line of the key's last occurrence.
    """

    at: KeyPath
    line: int
    column: int
    last_line: int
    text: str = ""

    def below(self, lines: int) -> "RepeatedKey":
        """Return a copy whose line numbers are increased by `lines`."""
        return replace(self, line=self.line + lines, last_line=self.last_line + lines)


def position_at(text: str, index: int) -> Position:
    """Return the line and column of the character with this index."""
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def nearest(positions: Positions, at: KeyPath) -> Position | None:
    """Return the position of the value at a path. If this position is unknown, return the position of the
    nearest parent whose position is known.
    """
    return next((positions[at[:end]] for end in range(len(at), 0, -1) if at[:end] in positions), None)


def line_and_column(position: Position | None) -> tuple[int | None, int | None]:
    """Return the line and column of a value.

    For a mapping or list, or a value that is not on the same line as its key, this is the position of the
    key.
    """
    return (position.line, position.value or position.column) if position else (None, None)
