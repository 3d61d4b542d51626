"""Who last changed each attribute of a version, and each line of its texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from server.documents.values import is_empty, same_values
from server.history.differences import MAX_COMPARED_CHARS, LineMatcher, Values
from server.history.versions import Version
from server.index.budget import Budget
from server.schema.model import Attribute

MAX_VERSIONS = 500  # What is older counts as written in the first of them.


@dataclass(slots=True)
class Blame:
    """The version that an attribute got its value from, and that of each line of a text with several."""

    version: Version
    lines: list[tuple[str, Version]] = field(default_factory=list)


def blame(
    attributes: Sequence[Attribute], versions: Iterable[tuple[Version, Values | None]], budget: Budget
) -> dict[str, Blame]:
    """For each attribute with a value, where that is from; `versions` are of one file, the oldest first.

    Raises LimitError.
    """
    found: dict[str, Blame] = {}
    last: Values = {}
    for version, values in versions:
        if values is None:
            continue  # It could not be read, or was deleted: what came after it counts from there.
        for attribute in attributes:
            old, new = last.get(attribute.name), values.get(attribute.name)
            if is_empty(new):
                found.pop(attribute.name, None)
            elif attribute.name not in found or not same_values(old, new):
                before = found.get(attribute.name)
                budget.spend(1 + (len(before.lines) if before else 0) + str(new).count("\n"))
                lines = _lines(before.lines if before else [], new, version)
                found[attribute.name] = Blame(version, lines)
        last = values
    return found


def _lines(before: list[tuple[str, Version]], text: Any, version: Version) -> list[tuple[str, Version]]:
    """The lines of a text with the version that each is from."""
    if not isinstance(text, str) or "\n" not in text or len(text) > MAX_COMPARED_CHARS:
        return []
    lines = text.split("\n")
    made = [(line, version) for line in lines]
    for at, start, size in LineMatcher([line for line, _ in before], lines).get_matching_blocks():
        made[start : start + size] = before[at : at + size]
    return made
