"""Combination of two texts, with git's conflict markers around their differences."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

MARKER_CHARS = 7
# If there are more pairs of lines, everything from the first difference to the last is marked as one
# conflict.
MAX_COMPARED_LINE_PAIRS = 1_000_000
_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # `splitlines` would also split at other characters.

# range of differing lines: start and end index in one text, then in the other
Span = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Labels:
    """Names of the versions in conflict markers."""

    base: str = "base"
    ours: str = "ours"
    theirs: str = "theirs"


def mark_conflicts(ours: str, theirs: str, base: str | None, labels: Labels, size: int = MARKER_CHARS) -> str:
    """Combine two texts, and mark each difference as a conflict.

    If `base` is given, conflicts also contain its lines, as in git's `diff3` style.
    """
    our_lines, their_lines = _LINE.findall(ours), _LINE.findall(theirs)
    newline = "\r\n" if "\r\n" in ours else "\n"
    alignment = _LineAlignment.of(our_lines, _LINE.findall(base)) if base is not None else None
    result: list[str] = []
    at = 0
    for start, end, start_theirs, end_theirs in _differences(our_lines, their_lines):
        result += our_lines[at:start]
        result.append(f"{'<' * size} {labels.ours}{newline}")
        result += _with_final_newline(our_lines[start:end], newline)
        if alignment is not None:
            result.append(f"{'|' * size} {labels.base}{newline}")
            result += _with_final_newline(alignment.lines(start, end), newline)
        result.append(f"{'=' * size}{newline}")
        result += _with_final_newline(their_lines[start_theirs:end_theirs], newline)
        result.append(f"{'>' * size} {labels.theirs}{newline}")
        at = end
    return "".join([*result, *our_lines[at:]])


def _with_final_newline(lines: Sequence[str], newline: str) -> list[str]:
    # A marker must start on a new line.
    unended = bool(lines) and not lines[-1].endswith("\n")
    return [*lines[:-1], lines[-1] + newline] if unended else list(lines)


def _differences(our_lines: Sequence[str], their_lines: Sequence[str]) -> Iterator[Span]:
    shorter = min(len(our_lines), len(their_lines))
    head = next((i for i in range(shorter) if our_lines[i] != their_lines[i]), shorter)
    rest = shorter - head
    tail = next(
        (
            i
            for i in range(rest)
            if our_lines[len(our_lines) - 1 - i] != their_lines[len(their_lines) - 1 - i]
        ),
        rest,
    )
    left, right = our_lines[head : len(our_lines) - tail], their_lines[head : len(their_lines) - tail]
    if len(left) * len(right) > MAX_COMPARED_LINE_PAIRS:
        yield head, head + len(left), head, head + len(right)
        return
    for tag, a, b, c, d in SequenceMatcher(None, left, right, autojunk=False).get_opcodes():
        if tag != "equal":
            yield head + a, head + b, head + c, head + d


@dataclass(frozen=True, slots=True)
class _LineAlignment:
    """Pairs of equal lines, numbered from 0: line `ours[i]` of our text equals line `base[i]` of the base."""

    ours: Sequence[int]
    base: Sequence[int]
    base_lines: Sequence[str]

    @staticmethod
    def of(ours: Sequence[str], base: Sequence[str]) -> "_LineAlignment":
        spans = [*_differences(ours, base), (len(ours), len(ours), len(base), len(base))]
        pairs: list[tuple[int, int]] = []
        at = at_base = 0
        for start, end, start_base, end_base in spans:
            pairs += zip(range(at, start), range(at_base, start_base), strict=True)
            at, at_base = end, end_base
        return _LineAlignment([pair[0] for pair in pairs], [pair[1] for pair in pairs], base)

    def lines(self, start: int, end: int) -> Sequence[str]:
        before, after = bisect_left(self.ours, start) - 1, bisect_left(self.ours, end)
        first = self.base[before] + 1 if before >= 0 else 0
        last = self.base[after] if after < len(self.base) else len(self.base_lines)
        return self.base_lines[first:last]
