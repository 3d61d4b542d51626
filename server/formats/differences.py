"""Comparison of two lists."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from server.formats.edits import is_same_value
from server.formats.tree import Tree

MAX_COMPARED_PAIRS = 10_000  # maximum number of pairs of an old and a new item that are compared


def common_prefix_and_suffix(old: list[Tree], new: list[Any]) -> tuple[int, int]:
    """Return how many items the lists have in common at the start, and how many at the end."""
    shorter = min(len(old), len(new))
    head = 0
    while head < shorter and is_same_value(old[head], new[head]):
        head += 1
    tail = 0
    while tail < shorter - head and is_same_value(old[-1 - tail], new[-1 - tail]):
        tail += 1
    return head, tail


@dataclass(frozen=True, slots=True)
class Difference:
    """Replacement of the old items from index `start` to `end` (exclusive) by the items in `new`."""

    start: int
    end: int
    new: list[Any]


def find_differences(old: list[Tree], new: list[Any]) -> list[Difference]:
    """Return the replacements that turn `old` into `new`."""
    head, tail = common_prefix_and_suffix(old, new)
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if not a and not b:
        return []
    found, i, j = [], 0, 0
    for m, n in [*_common_subsequence(a, b), (len(a), len(b))]:
        if m > i or n > j:
            found.append(Difference(head + i, head + m, b[j:n]))
        i, j = m + 1, n + 1
    return found


def _common_subsequence(a: list[Tree], b: list[Any]) -> list[tuple[int, int]]:
    """Return the index pairs of the longest common subsequence, or [] if the lists are too long."""
    if len(a) * len(b) > MAX_COMPARED_PAIRS:
        return []
    equal = [[is_same_value(x, y) for y in b] for x in a]
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
    """One step in changing a list. `old` is the item's old index, or -1 if it is new.

    A moved item has two steps: `moved_here` and `moved_away`.
    """

    kind: Literal["unchanged", "changed", "moved_here", "added", "removed", "moved_away"]
    old: int = -1
    new: Any = None


def compare_lists(old: list[Tree], new: list[Any]) -> Iterator[Step]:
    """Yield the steps that change `old` to `new`, in the order of `new`."""
    found = find_differences(old, new)
    moves = _moved_items(old, found)
    leaving = set(moves.values())
    at = 0
    for n, difference in enumerate(found):
        yield from (Step("unchanged", i, old[i]) for i in range(at, difference.start))
        left = [i for i in range(difference.start, difference.end) if i not in leaving]
        come = [j for j in range(len(difference.new)) if (n, j) not in moves]
        changed = _replaced_items(old, left, difference.new, come)
        waiting = [i for i in range(difference.start, difference.end) if i not in changed.values()]
        added: list[Step] = []
        for j, item in enumerate(difference.new):
            if (n, j) in moves:
                added.append(Step("moved_here", moves[n, j], item))
            elif j not in changed:
                added.append(Step("added", new=item))
            else:
                before = [i for i in waiting if i < changed[j]]
                waiting = waiting[len(before) :]
                yield from _removals(before, leaving)
                yield from added
                yield Step("changed", changed[j], item)
                added = []
        yield from _removals(waiting, leaving)
        yield from added
        at = difference.end
    yield from (Step("unchanged", i, old[i]) for i in range(at, len(old)))


def _removals(indexes: list[int], leaving: set[int]) -> Iterator[Step]:
    return (Step("moved_away" if i in leaving else "removed", i) for i in indexes)


def _moved_items(old: list[Tree], differences: list[Difference]) -> dict[tuple[int, int], int]:
    """Map each moved item to its index in `old`.

    The keys are pairs: an index in `differences`, and the item's index in that difference's `new`.
    """
    gone = [i for difference in differences for i in range(difference.start, difference.end)]
    if len(gone) * sum(len(difference.new) for difference in differences) > MAX_COMPARED_PAIRS:
        return {}
    moves = {}
    for n, difference in enumerate(differences):
        for j, item in enumerate(difference.new):
            i = next((i for i in gone if is_same_value(old[i], item)), None)
            if i is not None:
                gone.remove(i)
                moves[n, j] = i
    return moves


def _replaced_items(
    old: list[Tree], old_indexes: list[int], new: list[Any], new_indexes: list[int]
) -> dict[int, int]:
    """Map the indexes of changed items in `new` to the indexes of the `old` items that they replace."""
    if len(old_indexes) == len(new_indexes):
        return dict(zip(new_indexes, old_indexes, strict=True))
    pairs = {}
    for j in new_indexes:
        n = next((n for n, i in enumerate(old_indexes) if _is_alike(old[i], new[j])), None)
        if n is not None:
            pairs[j] = old_indexes[n]
            old_indexes = old_indexes[n + 1 :]
    return pairs


def _is_alike(old: Tree, new: Any) -> bool:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    return any(is_same_value(old[key], new[key]) for key in old.keys() & new.keys())
