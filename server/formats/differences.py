"""What turns one list into another, item by item: what stays, changes, moves, comes and goes."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from server.formats.edits import same
from server.formats.tree import Tree

MAX_COMPARED_PAIRS = 10_000  # Pairs of items of two lists.


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
    if len(a) * len(b) > MAX_COMPARED_PAIRS:
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


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one item: that at the index `old` (-1: a new one comes) has the value `new`.

    An item that moves has two steps: it moves to its new place, and leaves its old one.
    """

    kind: Literal["stays", "changes", "moves", "comes", "goes", "leaves"]
    old: int = -1
    new: Any = None


def steps(old: list[Tree], new: list[Any]) -> Iterator[Step]:
    """What becomes of all items, in the order of the new list; what goes is told where it stood."""
    found = differences(old, new)
    moves = _moves(old, found)
    leaving = set(moves.values())
    at = 0
    for n, difference in enumerate(found):
        yield from (Step("stays", i, old[i]) for i in range(at, difference.start))
        left = [i for i in range(difference.start, difference.end) if i not in leaving]
        come = [j for j in range(len(difference.new)) if (n, j) not in moves]
        changed = _pairs(old, left, difference.new, come)
        waiting = [i for i in range(difference.start, difference.end) if i not in changed.values()]
        added: list[Step] = []
        for j, item in enumerate(difference.new):
            if (n, j) in moves:
                added.append(Step("moves", moves[n, j], item))
            elif j not in changed:
                added.append(Step("comes", new=item))
            else:
                before = [i for i in waiting if i < changed[j]]
                waiting = waiting[len(before) :]
                yield from _removals(before, leaving)
                yield from added
                yield Step("changes", changed[j], item)
                added = []
        yield from _removals(waiting, leaving)
        yield from added
        at = difference.end
    yield from (Step("stays", i, old[i]) for i in range(at, len(old)))


def _removals(indexes: list[int], leaving: set[int]) -> Iterator[Step]:
    return (Step("leaves" if i in leaving else "goes", i) for i in indexes)


def _moves(old: list[Tree], found: list[Difference]) -> dict[tuple[int, int], int]:
    """The items that differences only move: (index of the difference, of its new item) → old index."""
    gone = [i for difference in found for i in range(difference.start, difference.end)]
    if len(gone) * sum(len(difference.new) for difference in found) > MAX_COMPARED_PAIRS:
        return {}
    moves = {}
    for n, difference in enumerate(found):
        for j, item in enumerate(difference.new):
            i = next((i for i in gone if same(old[i], item)), None)
            if i is not None:
                gone.remove(i)
                moves[n, j] = i
    return moves


def _pairs(old: list[Tree], left: list[int], values: list[Any], new: list[int]) -> dict[int, int]:
    """The new items that are old ones with changes: place by place, or else those that share a value."""
    if len(left) == len(new):
        return dict(zip(new, left, strict=True))
    pairs = {}
    for j in new:
        n = next((n for n, i in enumerate(left) if _is_alike(old[i], values[j])), None)
        if n is not None:
            pairs[j] = left[n]
            left = left[n + 1 :]
    return pairs


def _is_alike(old: Tree, new: Any) -> bool:
    """Whether two mappings have the same value under some key."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return any(same(old[key], new[key]) for key in old.keys() & new.keys())
