"""Blame: finds the version that last changed each attribute of a document, and each line of a text."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from server.documents.values import is_empty, same_values
from server.history.differences import MAX_COMPARED_CHARS, LineMatcher, Values
from server.history.versions import Version
from server.index.budget import Budget
from server.schema.model import Attribute

MAX_VERSIONS = 500  # Content that is older than this many versions is attributed to the oldest of them.


@dataclass(slots=True)
class Blame:
    """The version that last changed the value of an attribute.

    If the value is a text with several lines, `lines` contains, for each line, the version that last changed
    the line.
    """

    version: Version
    lines: list[tuple[str, Version]] = field(default_factory=list)


def blame(
    attributes: Sequence[Attribute], versions: Iterable[tuple[Version, Values | None]], budget: Budget
) -> dict[str, Blame]:
    """Return the version that last changed each attribute. Attributes without a value are omitted.

    `versions` are the versions of one file with their values, oldest first. Raises LimitError if the budget
    is exhausted.
    """
    origins: dict[str, Blame] = {}
    previous: Values = {}
    for version, values in versions:
        if values is None:
            continue  # If the file is unreadable or deleted, compare the next version with the previous one.
        for attribute in attributes:
            old, new = previous.get(attribute.name), values.get(attribute.name)
            if is_empty(new):
                origins.pop(attribute.name, None)
            elif attribute.name not in origins or not same_values(old, new):
                before = origins.get(attribute.name)
                budget.spend(1 + (len(before.lines) if before else 0) + str(new).count("\n"))
                lines = _lines(before.lines if before else [], new, version)
                origins[attribute.name] = Blame(version, lines)
        previous = values
    return origins


def _lines(before: list[tuple[str, Version]], text: Any, version: Version) -> list[tuple[str, Version]]:
    """Return the lines of a text, each paired with the version that last changed the line."""
    if not isinstance(text, str) or "\n" not in text or len(text) > MAX_COMPARED_CHARS:
        return []
    lines = text.split("\n")
    attributed = [(line, version) for line in lines]
    for at, start, size in LineMatcher([line for line, _ in before], lines).get_matching_blocks():
        attributed[start : start + size] = before[at : at + size]
    return attributed
