"""Matching of paths with patterns such as `/{publishedOn.year}/{slug}-{documentId}`.

Regular expressions could take very long. Instead, each part computes, from the last to the first, the
positions from which the rest matches. A set of positions is an integer; bit i is the position before the last
i characters.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LiteralPart:
    """Part that matches one of several texts, earlier ones first."""

    texts: tuple[str, ...]
    name: str = ""

    def start_positions(self, path: str, end_positions: int) -> int:
        """Return where this part can start in order to end at `end_positions`."""
        found = 0
        for text in self.texts:
            found |= _occurrences(path, text) & (end_positions << len(text))
        return found

    def end_index(self, path: str, start: int, end_positions: int) -> int:
        """Return the index at which this part ends. It must be in the set `end_positions`."""
        stops = (start + len(text) for text in self.texts if path.startswith(text, start))
        return next(stop for stop in stops if end_positions >> (len(path) - stop) & 1)


@dataclass(frozen=True, slots=True)
class PlaceholderPart:
    """Part that matches as many characters as possible, except `excluded_char`."""

    excluded_char: re.Pattern[str]
    name: str = ""

    def start_positions(self, path: str, end_positions: int) -> int:
        """Return where this part can start in order to end at `end_positions`."""
        fitting = (2 << len(path)) - 2
        for other in self.excluded_char.finditer(path):
            fitting ^= 1 << (len(path) - other.start())
        last = (end_positions << 1) & fitting
        # The addition clears the bits in `last` and, by carrying, those of the fitting characters before
        # them.
        return (fitting & ~(fitting + last)) | last

    def end_index(self, path: str, start: int, end_positions: int) -> int:
        """Return the index at which this part ends. It must be in the set `end_positions`."""
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
        """Return the named parts' values, or None if the path does not match.

        Parts are greedy, earlier ones first.
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
