"""Which component of a list is which of an earlier list: by id, by what it holds, by place and kind."""

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import product

from server.documents.values import Component, is_empty, same_values

MANY = 10_000  # so many pairs of components are not compared any more: their order decides


def places_in(
    base: Sequence[Component], later: Sequence[Component], *, by_id: bool = False
) -> list[int | None]:
    """For each component of a later list its place in `base`; None where it is new.

    `by_id`: the later list was made from `base`, so that an id says which component it is. The ids of lists
    that were read from files say no more than the place.
    """
    found: list[int | None] = [None] * len(later)
    free = set(range(len(base)))

    def take(at: int, place: int) -> None:
        found[at] = place
        free.discard(place)

    if by_id:
        known = {(component.type.uid, component.id): place for place, component in enumerate(base)}
        for at, component in enumerate(later):
            place = known.get((component.type.uid, component.id))
            if place in free:
                take(at, place)
    same: defaultdict[str, deque[int]] = defaultdict(deque)
    for place in sorted(free):
        same[repr(base[place])].append(place)
    for at, component in enumerate(later):
        if found[at] is None and (places := same.get(repr(component))):
            take(at, places.popleft())
    for left, places_left in _gaps(found, free):
        for at, place in _likely(base, later, left, places_left, common=0):
            take(at, place)
    unknown = [at for at, place in enumerate(found) if place is None]
    for at, place in _likely(base, later, unknown, sorted(free), common=1):  # moved, and changed
        take(at, place)
    return found


def _gaps(found: Sequence[int | None], free: set[int]) -> list[tuple[list[int], list[int]]]:
    """The components left over on both sides, together where they come behind the same one."""
    left: defaultdict[int, list[int]] = defaultdict(list)
    behind = -1
    for at, place in enumerate(found):
        if place is None:
            left[behind].append(at)
        else:
            behind = place
    places: defaultdict[int, list[int]] = defaultdict(list)
    for place in sorted(free):
        before = place - 1
        while before in free:
            before -= 1
        places[before].append(place)
    return [(ats, places[key]) for key, ats in left.items() if key in places]


def _likely(
    base: Sequence[Component], later: Sequence[Component], left: list[int], places: list[int], *, common: int
) -> list[tuple[int, int]]:
    """Pairs of one kind that have so many values in common, or more.

    Those that have most in common are taken first, of these those that are at the same place.
    """
    if len(left) * len(places) > MANY:
        pairs = [(0, 0, i, i) for i in range(min(len(left), len(places))) if not common]
    else:
        pairs = [
            (-_common(later[left[i]], base[places[k]]), abs(i - k), i, k)
            for i, k in product(range(len(left)), range(len(places)))
        ]
    chosen: list[tuple[int, int]] = []
    taken: set[tuple[str, int]] = set()
    for shared, _, i, k in sorted(pairs):
        at, place = left[i], places[k]
        if (
            -shared >= common
            and later[at].type is base[place].type
            and not taken & {("at", at), ("in", place)}
        ):
            taken |= {("at", at), ("in", place)}
            chosen.append((at, place))
    return chosen


def _common(one: Component, other: Component) -> int:
    """How many values two components have in common."""
    if one.type is not other.type:
        return 0
    pairs = zip(one.values, other.values, strict=True)
    return sum(same_values(a, b) for a, b in pairs if not is_empty(a))
