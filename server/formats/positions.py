"""Marks: where things stand in a text, by line and column from 1, counted in characters."""

from typing import NamedTuple

Keys = tuple[str | int, ...]


class Mark(NamedTuple):
    """The place of a key or a list's item; `value` is the column of a key's scalar on its line, else 0."""

    line: int
    column: int
    value: int = 0


Lines = dict[Keys, Mark]


def place(text: str, index: int) -> Mark:
    """The place of a position in a text."""
    return Mark(text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index))


def nearest(lines: Lines, at: Keys) -> Mark | None:
    """Where the innermost part of a path of keys stands that is there at all."""
    return next((lines[at[:end]] for end in range(len(at), 0, -1) if at[:end] in lines), None)
