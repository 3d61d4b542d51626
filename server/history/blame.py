"""Blame: the version of a document that last changed each attribute or each line of text."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from server.documents.values import same_values
from server.history.differences import MAX_COMPARED_CHARS, LineMatcher, Values
from server.history.versions import Version
from server.index.budget import Budget

MAX_VERSIONS = 500  # the limit; older content is attributed to the oldest of these versions


@dataclass(slots=True)
class Blame:
    """The version that last changed an attribute.

    For multi-line text, `lines` pairs each line with the version that last changed it.
    """

    version: Version
    lines: list[tuple[str, Version]] = field(default_factory=list)


def blame(versions: Iterable[tuple[Version, Values | None]], budget: Budget) -> dict[str, Blame]:
    """Return a mapping from each attribute's name to the version that last changed the attribute.

    `versions` pairs each version with its values, oldest first. The values are None if the file was deleted
    or can't be read. Raises LimitError if the request's budget runs out.
    """
    origins: dict[str, Blame] = {}
    previous: Values = {}
    for version, values in versions:
        if values is None:
            continue  # The file is unreadable or deleted, so skip this version.
        for name in dict.fromkeys((*values, *origins)):
            old, new = previous.get(name), values.get(name)
            if new is None:
                origins.pop(name, None)
            elif name not in origins or not same_values(old, new):
                before = origins.get(name)
                budget.spend(1 + (len(before.lines) if before else 0) + str(new).count("\n"))
                lines = _blame_lines(before.lines if before else [], new, version)
                origins[name] = Blame(version, lines)
        previous = values
    return origins


def _blame_lines(before: list[tuple[str, Version]], text: Any, version: Version) -> list[tuple[str, Version]]:
    """Pair each line of `text` with the version that last changed it.

    `before` is the result for the previous text. Returns [] if `text` has only one line or is too long.
    """
    if not isinstance(text, str) or "\n" not in text or len(text) > MAX_COMPARED_CHARS:
        return []
    lines = text.split("\n")
    attributed = [(line, version) for line in lines]
    for at, start, size in LineMatcher([line for line, _ in before], lines).get_matching_blocks():
        attributed[start : start + size] = before[at : at + size]
    return attributed
