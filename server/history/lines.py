"""Which lines two texts have in common, in a time that grows with the texts and not with their product.

`difflib` compares each line with all that are like it: of a long text, in which every second line is empty,
that takes minutes. Here the lines that either text has once hold the others in place (patience diff).
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import Match, SequenceMatcher
from itertools import pairwise

DEEPEST = 8  # levels of parts in which lines are looked for that a part has once
FEW = 1000  # pairs of lines that are compared each with each


class LineMatcher(SequenceMatcher[str]):
    """`difflib.SequenceMatcher` with blocks that are found in another way."""

    def __init__(self, before: Sequence[str], after: Sequence[str]) -> None:
        super().__init__(None, before, after, autojunk=False)
        self._texts = before, after

    def get_matching_blocks(self) -> list[Match]:
        """The blocks of lines that both texts have, in order, and an empty one behind the last line."""
        before, after = self._texts
        found = sorted(_blocks(before, after))
        return [*map(Match._make, found), Match(len(before), len(after), 0)]


def unified_lines(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of a unified diff, without the names of files before them."""
    lines = []
    for group in LineMatcher(before, after).get_grouped_opcodes():
        (_, old, _, new, _), (_, _, old_end, _, new_end) = group[0], group[-1]
        lines.append(f"@@ -{_range(old, old_end)} +{_range(new, new_end)} @@")
        for tag, start, end, new_start, new_end in group:
            if tag == "equal":
                lines += [f" {line}" for line in before[start:end]]
            else:
                lines += [f"-{line}" for line in before[start:end]]
                lines += [f"+{line}" for line in after[new_start:new_end]]
    return lines


def _range(start: int, end: int) -> str:
    """Some lines as a unified diff names them."""
    size = end - start
    return f"{start + 1}" if size == 1 else f"{start + bool(size)},{size}"


def _blocks(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int, int]]:
    """Blocks of the same lines: where they begin in both texts, and how many they are. In no order."""
    left = [(0, len(before), 0, len(after), 0)]
    while left:
        start, end, new, new_end, depth = left.pop()
        size = _common(before, after, range(start, end), range(new, new_end))
        if size:
            yield start, new, size
        start, new = start + size, new + size
        size = _common(before, after, range(start, end)[::-1], range(new, new_end)[::-1])
        if size:
            yield end - size, new_end - size, size
        end, new_end = end - size, new_end - size
        if (end - start) * (new_end - new) <= FEW:
            matcher = SequenceMatcher(None, before[start:end], after[new:new_end], autojunk=False)
            yield from ((start + a, new + b, size) for a, b, size in matcher.get_matching_blocks() if size)
        elif depth < DEEPEST and (held := _held(before[start:end], after[new:new_end])):
            # Each part begins with a line that both have, up to the next one.
            places = [(start, new), *((start + a, new + b) for a, b in held), (end, new_end)]
            left += [(a, a_end, b, b_end, depth + 1) for (a, b), (a_end, b_end) in pairwise(places)]


def _common(before: Sequence[str], after: Sequence[str], places: range, new_places: range) -> int:
    """How many lines are the same, from the first places on."""
    size = 0
    for place, new in zip(places, new_places, strict=False):
        if before[place] != after[new]:
            break
        size += 1
    return size


def _held(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The places of lines that both have once: as many as come in the same order."""
    once, new_once = ({line for line, n in Counter(lines).items() if n == 1} for lines in (before, after))
    places = {line: place for place, line in enumerate(after) if line in once and line in new_once}
    pairs = [(place, places[line]) for place, line in enumerate(before) if line in places]
    ends: list[int] = []  # of the runs of each length so far, the least place at which one ends
    tails: list[int] = []  # the pairs at these ends
    earlier: list[int] = []  # of each pair, the one before it in its run; -1 for none
    for number, (_, new) in enumerate(pairs):
        length = bisect_left(ends, new)
        ends[length : length + 1] = [new]
        tails[length : length + 1] = [number]
        earlier.append(tails[length - 1] if length else -1)
    run = []
    number = tails[-1] if tails else -1
    while number >= 0:
        run.append(pairs[number])
        number = earlier[number]
    return run[::-1]
