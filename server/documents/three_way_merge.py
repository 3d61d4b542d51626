"""Three-way merge of changes to a document."""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeVar

from server.documents.values import Component, empty_value, is_empty, same_values
from server.formats.text_positions import KeyPath
from server.schema.model import Attribute, Type

# --- components -----------------------------------------------------------------------------------

MAX_COMPARED_PAIRS = 10_000  # With more pairs, components are matched only by order.


def match_to_base(
    base: Sequence[Component], later: Sequence[Component], *, ids_match: bool = False
) -> list[int | None]:
    """For each component in `later`, return its index in `base`, or None if it is new.

    Set `ids_match` only if `later` is a changed copy of `base`. Otherwise, ids can't be compared, because
    they depend on the positions of components.
    """
    found: list[int | None] = [None] * len(later)
    free = set(range(len(base)))

    def take(at: int, place: int) -> None:
        found[at] = place
        free.discard(place)

    if ids_match:
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
    for left, places_left in _group_unmatched(found, free):
        for at, place in _match_similar(base, later, left, places_left, min_equal_values=0):
            take(at, place)
    unknown = [at for at, place in enumerate(found) if place is None]
    for at, place in _match_similar(
        base, later, unknown, sorted(free), min_equal_values=1
    ):  # moved and changed components
        take(at, place)
    return found


def _group_unmatched(found: Sequence[int | None], free: set[int]) -> list[tuple[list[int], list[int]]]:
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


def _match_similar(
    base: Sequence[Component],
    later: Sequence[Component],
    later_indexes: list[int],
    base_indexes: list[int],
    *,
    min_equal_values: int,
) -> list[tuple[int, int]]:
    """Return pairs of similar components, the most similar ones first.

    A pair consists of an index in `later` and an index in `base`.
    """
    if len(later_indexes) * len(base_indexes) > MAX_COMPARED_PAIRS:
        pairs = [
            (0, 0, i, i) for i in range(min(len(later_indexes), len(base_indexes))) if not min_equal_values
        ]
    else:
        pairs = [
            (-_count_equal_values(later[later_indexes[i]], base[base_indexes[k]]), abs(i - k), i, k)
            for i, k in product(range(len(later_indexes)), range(len(base_indexes)))
        ]
    chosen: list[tuple[int, int]] = []
    taken: set[tuple[str, int]] = set()
    for shared, _, i, k in sorted(pairs):
        at, place = later_indexes[i], base_indexes[k]
        if (
            -shared >= min_equal_values
            and later[at].type is base[place].type
            and not taken & {("at", at), ("in", place)}
        ):
            taken |= {("at", at), ("in", place)}
            chosen.append((at, place))
    return chosen


def _count_equal_values(component: Component, other: Component) -> int:
    if component.type is not other.type:
        return 0
    pairs = zip(component.values, other.values, strict=True)
    return sum(same_values(a, b) for a, b in pairs if not is_empty(a))


# --- order ----------------------------------------------------------------------------------------

Key = TypeVar("Key", bound=Hashable)


def merge_order(base: Iterable[Key], ours: Iterable[Key], theirs: Iterable[Key]) -> list[Key] | None:
    """Merge two changed orders of the keys in `base`. Return None if the changes conflict.

    If both sides added keys at the same place, the keys of `theirs` come first.
    """
    base, ours, theirs = (tuple(dict.fromkeys(keys)) for keys in (base, ours, theirs))
    kept = set(base) & set(ours) & set(theirs)
    before, mine, other = ([key for key in keys if key in kept] for keys in (base, ours, theirs))
    if mine != before and other not in (before, mine):
        return None
    gone = set(base) - kept
    # The side that moved keys determines the order. Keys added by the other side are inserted.
    leader, follower = (ours, theirs) if mine != before and other == before else (theirs, ours)
    merged = [key for key in leader if key not in gone]
    passed = set(leader) - set(base) - set(follower) if follower is ours else set()
    _insert_missing(merged, [key for key in follower if key not in gone], passed)
    return merged


def _insert_missing(merged: list[Key], keys: Sequence[Key], passed: set[Key]) -> None:
    places: dict[Key | None, list[Key]] = {}  # keys to insert, by predecessor
    present, before, waiting = set(merged), None, list[Key]()
    for key in keys:
        if key in present:
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


# --- merge ----------------------------------------------------------------------------------------

Values = Mapping[str, Any]
# (base, ours, theirs) → the merged text, or None if the changes overlap
MergeText = Callable[[str, str, str], str | None]
TEXT_TYPES = frozenset({"text", "richtext"})


@dataclass(frozen=True, slots=True)
class Conflict:
    """A value that the two sides changed in different ways.

    If the value does not exist on a side, it is None there. List indexes in `path` refer to `base`. If one
    side deleted the document, `path` is empty.
    """

    path: KeyPath
    base: Any
    ours: Any
    theirs: Any


@dataclass(frozen=True, slots=True)
class MergeResult:
    """The merged values, or None if the document is deleted.

    In a conflict, the value of `theirs` is used.
    """

    values: dict[str, Any] | None
    conflicts: tuple[Conflict, ...] = ()


def merge(
    type_: Type,
    base: Values | None,
    ours: Values | None,
    theirs: Values | None,
    merge_text: MergeText,
    *,
    ids_match: bool = False,
) -> MergeResult:
    """Merge `ours` and `theirs`, two changed versions of `base`. A version that does not exist is None.

    Set `ids_match` only if `ours` is a changed copy of `base` that has the same component ids.
    """
    if ours is None or theirs is None:
        return _merge_missing(type_, base, ours, theirs)
    merging = _Merging(merge_text, ids_match)
    values = {
        name: theirs[name]
        if attribute.derived
        else merging.value(
            attribute, base[name] if base else empty_value(attribute), ours[name], theirs[name], (name,)
        )
        for name, attribute in type_.attributes.items()
    }
    return MergeResult(values, tuple(merging.conflicts))


def _merge_missing(
    type_: Type, base: Values | None, ours: Values | None, theirs: Values | None
) -> MergeResult:
    left = ours or theirs
    if left is None or base is None:
        return MergeResult(dict(left) if left is not None else None)
    if all(same_values(base[name], left[name]) for name in type_.attributes):
        return MergeResult(None)
    values = dict(theirs) if theirs is not None else None
    return MergeResult(values, (Conflict((), base, ours, theirs),))


@dataclass(slots=True)
class _Merging:
    merge_text: MergeText
    ids_match: bool
    conflicts: list[Conflict] = field(default_factory=list)

    def value(self, attribute: Attribute, base: Any, ours: Any, theirs: Any, path: KeyPath) -> Any:
        """Merge a value. If there is a conflict, record it and return the value of `theirs`."""
        if same_values(ours, base) or same_values(ours, theirs):
            return theirs
        if same_values(theirs, base):
            return ours
        if attribute.holds_components and attribute.to_many:
            return self._components(base, ours, theirs, path)
        if attribute.holds_components and None not in (base, ours, theirs):
            return self._component(base, ours, theirs, path)
        merged: Any = None
        if attribute.has_targets and attribute.to_many:
            order = merge_order(base, ours, theirs)
            merged = None if order is None else tuple(order)
        elif attribute.type in TEXT_TYPES and all(isinstance(text, str) for text in (base, ours, theirs)):
            merged = self.merge_text(base, ours, theirs)
        return self._conflict(path, base, ours, theirs) if merged is None else merged

    def _conflict(self, path: KeyPath, base: Any, ours: Any, theirs: Any) -> Any:
        self.conflicts.append(Conflict(path, base, ours, theirs))
        return theirs

    def _component(self, base: Component, ours: Component, theirs: Component, path: KeyPath) -> Component:
        attributes = theirs.type.attributes.values()
        values = (
            self.value(attribute, before, mine, other, (*path, attribute.name))
            for attribute, before, mine, other in zip(
                attributes, base.values, ours.values, theirs.values, strict=True
            )
        )
        return Component(theirs.type, (theirs.id, *values))

    def _components(
        self,
        base: Sequence[Component],
        ours: Sequence[Component],
        theirs: Sequence[Component],
        path: KeyPath,
    ) -> tuple[Component, ...]:
        mine, other = _components_by_key(base, ours, theirs, ids_match=self.ids_match)
        order = merge_order(range(len(base)), mine, other)
        if order is None:
            self._conflict(path, base, ours, theirs)
            return tuple(theirs)
        for place, before in enumerate(base):
            left = mine.get(place) or other.get(place)
            if left and not (place in mine and place in other) and left != before:
                self._conflict((*path, place), before, mine.get(place), other.get(place))
        return tuple(
            self._component(base[key], mine[key], other[key], (*path, key))
            if isinstance(key, int)
            else other[key]
            if key in other
            else mine[key]
            for key in order
        )


def _components_by_key(
    base: Sequence[Component], ours: Sequence[Component], theirs: Sequence[Component], *, ids_match: bool
) -> tuple[dict[Hashable, Component], dict[Hashable, Component]]:
    """Return the components of each side by key. Components to merge with each other have the same key.

    For a component that is in `base`, the key is its index there.
    """
    mine: dict[Hashable, Component] = {}
    added: dict[str, list[Hashable]] = {}
    for at, (component, place) in enumerate(
        zip(ours, match_to_base(base, ours, ids_match=ids_match), strict=True)
    ):
        key: Hashable = ("ours", at) if place is None else place
        mine[key] = component
        if place is None:
            added.setdefault(repr(component), []).append(key)
    other: dict[Hashable, Component] = {}
    for at, (component, place) in enumerate(zip(theirs, match_to_base(base, theirs), strict=True)):
        same = added.get(repr(component)) if place is None else None
        other[same.pop(0) if same else ("theirs", at) if place is None else place] = component
    return mine, other
