"""Where things stand in a text, by line and column: both from 1, and counted in characters."""

from typing import NamedTuple

KeyPath = tuple[str | int, ...]


class Position(NamedTuple):
    """Where a key or a list's item begins; `value` is the column of a key's scalar on its line, else 0."""

    line: int
    column: int
    value: int = 0


Positions = dict[KeyPath, Position]


def position_at(text: str, index: int) -> Position:
    """The line and column of the character at an index."""
    return Position(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def nearest(positions: Positions, at: KeyPath) -> Position | None:
    """The position of a value, or of the innermost one around it that has a position."""
    return next((positions[at[:end]] for end in range(len(at), 0, -1) if at[:end] in positions), None)


def line_and_column(position: Position | None) -> tuple[int | None, int | None]:
    """The line and column of a value: of its scalar where that is on the line of its key."""
    return (position.line, position.value or position.column) if position else (None, None)
