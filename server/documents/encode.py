"""A document's values → what its file says: the inverse of `decode`, in trees for `formats.yaml.writer`."""

from collections.abc import Iterator, Mapping
from typing import Any

from server.documents.keys import spread
from server.documents.values import Component, components_in, is_empty, same_values
from server.formats.tree import Plain, Tree
from server.schema.model import Attribute, Type

_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})


def encode(attribute: Attribute, value: Any) -> Any:
    """One attribute's value as a tree; dates and timestamps as Plain, since they need no quotes."""
    if value is None:
        return None
    if attribute.type in _TEMPORAL:
        return Plain(value)
    if attribute.has_targets:
        targets = [_target(target) for target in value]
        return targets if attribute.to_many else (targets[0] if targets else None)
    if attribute.type == "component":
        return [_component(c) for c in value] if attribute.repeatable else _component(value)
    if attribute.type == "dynamiczone":
        return [{"__component": c.type.uid, **_component(c)} for c in value]
    return value


def _target(target: Any) -> Any:
    if isinstance(target, tuple):
        return {"__type": target[0], "documentId": target[1]}
    return target


def _component(component: Component) -> dict[str, Any]:
    return encode_attributes(component.type, component.values)


def encode_attributes(type_: Type, values: Any) -> dict[str, Any]:
    """What a file has to say of a row: the attributes with a value, or without their default."""
    found: dict[str, Any] = {}
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        if not is_empty(value) or attribute.has_default:  # A missing key would mean the default.
            found[attribute.name] = encode(attribute, value)
    return spread(type_, found)


def changed_keys(
    type_: Type, old: Mapping[str, Any], new: Mapping[str, Any], tree: Mapping[str, Tree]
) -> dict[str, Any]:
    """The trees of the attributes that differ between two documents' values, by name.

    `tree` is what the file says now. Of a component that stays, what it says of values that stay is
    left as it is: keys that no schema knows, and defaults that it need not name.
    """
    return {
        name: _encode_changed(attribute, old.get(name), new[name], tree.get(name))
        for name, attribute in type_.attributes.items()
        if not attribute.derived and not same_values(old.get(name), new[name])
    }


def _encode_changed(attribute: Attribute, old: Any, new: Any, tree: Tree) -> Any:
    encoded = encode(attribute, new)
    if not attribute.holds_components:
        return encoded
    before, after = components_in(old), components_in(new)
    trees = tree if isinstance(tree, list) else [tree]
    if not after or len(trees) != len(before) or not all(isinstance(item, dict) for item in trees):
        return encoded
    made = list(encoded) if isinstance(encoded, list) else [encoded]
    for i, at in enumerate(_places_before(before, after)):
        if at is not None:
            made[i] = _component_changed(before[at], after[i], trees[at])
    return made if isinstance(encoded, list) else made[0]


def _places_before(before: tuple[Component, ...], after: tuple[Component, ...]) -> Iterator[int | None]:
    """Where each component of a list stood before: by its id, else at its place; None where it is new."""
    places: dict[tuple[str, int], int] = {}
    for place, component in enumerate(before):
        places.setdefault((component.type.uid, component.id), place)
    kept = {component.id for component in after}
    for place, component in enumerate(after):
        free = place < len(before) and before[place].type is component.type and before[place].id not in kept
        yield places.get((component.type.uid, component.id), place if free else None)


def _component_changed(old: Component, new: Component, tree: dict[str, Tree]) -> dict[str, Any]:
    found: dict[str, Any] = dict(tree)
    for (name, attribute), before, after in zip(
        new.type.attributes.items(), old.values, new.values, strict=True
    ):
        if same_values(before, after):
            continue
        if is_empty(after) and not attribute.has_default:
            found.pop(name, None)
        else:
            found[name] = _encode_changed(attribute, before, after, tree.get(name))
    return found
