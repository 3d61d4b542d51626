"""Matching of paths against patterns such as `/{publishedOn.year}/{slug}-{documentId}`.

Regular expressions could take very long to match. Instead, the parts of a pattern are examined from last to
first. For each part, we compute the set of positions from which this part and all later ones match. A set of
positions is stored as an integer, in which bit i stands for the position before the last i characters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiteralPart:
    """Part of a pattern that matches any one of `texts`. Texts that come first are preferred."""

    texts: tuple[str, ...]
    name: str = ""

    def start_positions(self, path: str, end_positions: int) -> int:
        """Return all positions at which this part can start if it must end at one of `end_positions`."""
        found = 0
        for text in self.texts:
            found |= _occurrences(path, text) & (end_positions << len(text))
        return found

    def end_index(self, path: str, start: int, end_positions: int) -> int:
        """Return the index at which this part ends if it starts at the index `start`.

        The part must end at one of `end_positions`.
        """
        stops = (start + len(text) for text in self.texts if path.startswith(text, start))
        return next(stop for stop in stops if end_positions >> (len(path) - stop) & 1)


@dataclass(frozen=True, slots=True)
class PlaceholderPart:
    """Part of a pattern that matches as many characters as possible.

    `excluded_char` matches each character that the part can't contain.
    """

    excluded_char: re.Pattern[str]
    name: str = ""

    def start_positions(self, path: str, end_positions: int) -> int:
        fitting = (2 << len(path)) - 2
        for other in self.excluded_char.finditer(path):
            fitting ^= 1 << (len(path) - other.start())
        last = (end_positions << 1) & fitting
        # The addition clears the bits in `last` and, by carrying, those of the fitting characters before
        # them.
        return (fitting & ~(fitting + last)) | last

    def end_index(self, path: str, start: int, end_positions: int) -> int:
        other = self.excluded_char.search(path, start)
        stop = other.start() if other else len(path)
        near = end_positions >> (len(path) - stop)
        return stop - ((near & -near).bit_length() - 1)


Part = LiteralPart | PlaceholderPart


@dataclass(frozen=True, slots=True)
class AddressPattern:
    """The parts of a URL pattern, in order."""

    parts: tuple[Part, ...]

    def match(self, path: str) -> dict[str, str] | None:
        """Match a path. Return the values of the named parts, or None if the path does not match.

        Each part matches as many characters as possible. Earlier parts take precedence.
        """
        first = self.parts[0] if self.parts else None
        if isinstance(first, LiteralPart) and not path.startswith(first.texts):
            return None  # A quick test that excludes most addresses.
        reachable = [1]
        for part in reversed(self.parts):
            reachable.append(part.start_positions(path, reachable[-1]))
            if not reachable[-1]:
                return None
        if not reachable.pop() >> len(path) & 1:
            return None
        values: dict[str, str] = {}
        start = 0
        for part, ends in zip(self.parts, reversed(reachable), strict=True):
            end = part.end_index(path, start, ends)
            if part.name:
                values[part.name] = path[start:end]
            start = end
        return values


def _occurrences(path: str, text: str) -> int:
    return sum(1 << (len(path) - at) for at in _indexes(path, text))


def _indexes(path: str, text: str) -> Iterator[int]:
    at = path.find(text)
    while at >= 0:
        yield at
        at = path.find(text, at + 1)
