"""Merges two changes of a document: what only one side has changed is taken from that side.

It goes attribute by attribute, and into components. Lists of relations and media are merged by what they
name, lists of components by which component is which, texts of several lines by line. Every other value
is one: where both sides have changed it, and not to the same, that is a conflict.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from server.documents.merge.components import places_in
from server.documents.merge.order import merge_order
from server.documents.values import Component, empty_value, same_values
from server.formats.positions import KeyPath
from server.schema.model import Attribute, Type

Values = Mapping[str, Any]
# (base, ours, theirs) → the text with the lines that either has changed; None where the changes touch.
MergeText = Callable[[str, str, str], str | None]
_BY_LINE = frozenset({"text", "richtext"})


@dataclass(frozen=True, slots=True)
class Conflict:
    """What both sides have changed, each otherwise; None is no value, and no document or component.

    `path` leads to it from the document, by names and by places in the lists of the base; it is empty where
    one side has deleted the document that the other has changed.
    """

    path: KeyPath
    base: Any
    ours: Any
    theirs: Any


@dataclass(frozen=True, slots=True)
class Merged:
    """What a merge came to: all values, None for a document that is gone; of a conflict, theirs."""

    values: dict[str, Any] | None
    conflicts: tuple[Conflict, ...] = ()


def merge(
    type_: Type,
    base: Values | None,
    ours: Values | None,
    theirs: Values | None,
    merge_text: MergeText,
    *,
    by_id: bool = False,
) -> Merged:
    """Merge two versions of a document that were made from a third, each None where there is none.

    The values are by attribute, as a row holds them; of relations that others store, theirs are kept. The
    components of the result have the ids of theirs, where they are there. `by_id`: components of ours with
    an id of a component of the base are that one.
    """
    if ours is None or theirs is None:
        return _merge_missing(type_, base, ours, theirs)
    merging = _Merging(merge_text, by_id)
    values = {
        name: theirs[name]
        if attribute.derived
        else merging.value(
            attribute, base[name] if base else empty_value(attribute), ours[name], theirs[name], (name,)
        )
        for name, attribute in type_.attributes.items()
    }
    return Merged(values, tuple(merging.conflicts))


def _merge_missing(type_: Type, base: Values | None, ours: Values | None, theirs: Values | None) -> Merged:
    """What is left where one side has no document: it was added by the other, or deleted."""
    left = ours or theirs
    if left is None or base is None:
        return Merged(dict(left) if left is not None else None)
    if all(same_values(base[name], left[name]) for name in type_.attributes):
        return Merged(None)
    values = dict(theirs) if theirs is not None else None
    return Merged(values, (Conflict((), base, ours, theirs),))


@dataclass(slots=True)
class _Merging:
    """One merge: how texts are merged, and the conflicts so far."""

    merge_text: MergeText
    by_id: bool
    conflicts: list[Conflict] = field(default_factory=list)

    def value(self, attribute: Attribute, base: Any, ours: Any, theirs: Any, path: KeyPath) -> Any:
        """The value of an attribute with the changes of both; theirs, and a conflict, where that can't be."""
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
        elif attribute.type in _BY_LINE and all(isinstance(text, str) for text in (base, ours, theirs)):
            merged = self.merge_text(base, ours, theirs)
        return self._conflict(path, base, ours, theirs) if merged is None else merged

    def _conflict(self, path: KeyPath, base: Any, ours: Any, theirs: Any) -> Any:
        self.conflicts.append(Conflict(path, base, ours, theirs))
        return theirs

    def _component(self, base: Component, ours: Component, theirs: Component, path: KeyPath) -> Component:
        """One component that both sides have kept. All three are of one kind."""
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
        """A list with the components that both have added and changed, without those that either removed."""
        mine, other = _keyed(base, ours, theirs, by_id=self.by_id)
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


def _keyed(
    base: Sequence[Component], ours: Sequence[Component], theirs: Sequence[Component], *, by_id: bool
) -> tuple[dict[Hashable, Component], dict[Hashable, Component]]:
    """The components of both sides by what they are: a place in the base, else what stands for a new one.

    A component that both sides have added is one.
    """
    mine: dict[Hashable, Component] = {}
    added: dict[str, list[Hashable]] = {}
    for at, (component, place) in enumerate(zip(ours, places_in(base, ours, by_id=by_id), strict=True)):
        key: Hashable = ("ours", at) if place is None else place
        mine[key] = component
        if place is None:
            added.setdefault(repr(component), []).append(key)
    other: dict[Hashable, Component] = {}
    for at, (component, place) in enumerate(zip(theirs, places_in(base, theirs), strict=True)):
        same = added.get(repr(component)) if place is None else None
        other[same.pop(0) if same else ("theirs", at) if place is None else place] = component
    return mine, other
