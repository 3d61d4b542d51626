"""What the editors of YAML and JSON share: cuts of a text, and whether a tree already says a value."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from server.formats.scalars import is_null, typed
from server.formats.tree import Plain, Tree

REMOVE: Any = object()  # stands for a value where a key is to be removed
MOST_COMPARED = 10_000  # pairs of items of two lists


@dataclass(frozen=True, slots=True)
class Cut:
    """Characters `start` to `end` of a text become `text`."""

    start: int
    end: int
    text: str


def apply_cuts(text: str, cuts: list[Cut]) -> str:
    """The text after some cuts, which must not overlap.

    Insertions at one index keep their order, and come before what is cut out there.
    """
    ordered = sorted(cuts, key=lambda cut: (cut.start, cut.end > cut.start))
    for cut in reversed(ordered):
        text = text[: cut.start] + cut.text + text[cut.end :]
    return text


def same(old: Tree, new: Any) -> bool:
    """Whether a tree that was read from a file already says a value."""
    if isinstance(new, dict):
        return isinstance(old, dict) and old.keys() == new.keys() and all(same(old[k], new[k]) for k in new)
    if isinstance(new, list | tuple):
        return isinstance(old, list) and len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, dict | list):
        return False
    if is_null(new) or is_null(old):
        return is_null(new) and is_null(old)
    if isinstance(new, str):
        return isinstance(old, str) and str(old) == str(new)
    if type(old) is Plain:
        try:
            return Decimal(str(old)) == new if isinstance(new, Decimal) else _equal(typed(old), new)
        except (ValueError, ArithmeticError):
            return False
    return _equal(old, new)


def common_ends(old: list[Tree], new: list[Any]) -> tuple[int, int]:
    """How many items are the same at the beginning of two lists, and how many at the end."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and same(old[head], new[head]):
        head += 1
    tail = 0
    while tail < shorter - head and same(old[-1 - tail], new[-1 - tail]):
        tail += 1
    return head, tail


@dataclass(frozen=True, slots=True)
class Difference:
    """Items `start` to `end` of a list become `new`; those around them stay."""

    start: int
    end: int
    new: list[Any]


def differences(old: list[Tree], new: list[Any]) -> list[Difference]:
    """What turns one list into another, so that as many items as possible stay as they are.

    Between lists of too many items for that, all that differs is one difference.
    """
    head, tail = common_ends(old, new)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if not a and not b:
        return []
    found, i, j = [], 0, 0
    for m, n in [*_common(a, b), (len(a), len(b))]:
        if m > i or n > j:
            found.append(Difference(head + i, head + m, b[j:n]))
        i, j = m + 1, n + 1
    return found


def _common(a: list[Tree], b: list[Any]) -> list[tuple[int, int]]:
    """The indexes of a longest common subsequence of two lists."""
    if len(a) * len(b) > MOST_COMPARED:
        return []
    equal = [[same(x, y) for y in b] for x in a]
    longest = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in reversed(range(len(a))):
        for j in reversed(range(len(b))):
            further = max(longest[i + 1][j], longest[i][j + 1])
            longest[i][j] = longest[i + 1][j + 1] + 1 if equal[i][j] else further
    found, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if equal[i][j]:
            found.append((i, j))
            i, j = i + 1, j + 1
        elif longest[i + 1][j] >= longest[i][j + 1]:
            i += 1
        else:
            j += 1
    return found


def _equal(old: Any, new: Any) -> bool:
    """Equality that tells 1 from True and from 1.0."""
    return type(old) is type(new) and bool(old == new)
