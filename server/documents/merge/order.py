"""Three orders, each of things that stand in it once → one with what both sides added and removed."""

from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

Key = TypeVar("Key", bound=Hashable)


def merge_order(base: Iterable[Key], ours: Iterable[Key], theirs: Iterable[Key]) -> list[Key] | None:
    """The order with the changes of both sides; None where each has put what stays in an order of its own.

    What one side removed is gone. What one side added comes behind what it stands behind there, or at the end
    if it was there; where both added something at one place, theirs comes first.
    """
    base, ours, theirs = (tuple(dict.fromkeys(keys)) for keys in (base, ours, theirs))
    kept = set(base) & set(ours) & set(theirs)
    before, mine, other = ([key for key in keys if key in kept] for keys in (base, ours, theirs))
    if mine != before and other not in (before, mine):
        return None
    gone = set(base) - kept
    # The side that has moved something leads; what the other has added is put into its order.
    leader, follower = (ours, theirs) if mine != before and other == before else (theirs, ours)
    merged = [key for key in leader if key not in gone]
    passed = set(leader) - set(base) - set(follower) if follower is ours else set()
    _insert(merged, [key for key in follower if key not in gone], passed)
    return merged


def _insert(merged: list[Key], keys: Sequence[Key], passed: set[Key]) -> None:
    """Insert the keys that are not there yet, each behind the one before it and behind those `passed`."""
    places: dict[Key | None, list[Key]] = {}  # what is to be inserted, by what it comes behind
    there, before, waiting = set(merged), None, list[Key]()
    for key in keys:
        if key in there:
            places.setdefault(before, []).extend(waiting)
            before, waiting = key, []
        else:
            waiting.append(key)
    last = waiting
    waiting, result = places.get(None, []), list[Key]()
    for key in merged:
        if waiting and key not in passed:
            result.extend(waiting)
            waiting = []
        result.append(key)
        waiting = [*waiting, *places.get(key, ())]
    merged[:] = [*result, *waiting, *last]
