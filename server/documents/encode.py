"""A document's values → what its file says: the inverse of `values`, in trees that `emit` writes."""

from collections.abc import Mapping
from typing import Any

from server.documents.values import Component, is_empty
from server.formats.tree import Plain
from server.schema.model import Attribute, Type

_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})


def encode(attribute: Attribute, value: Any) -> Any:
    """One attribute's value as a tree; dates and timestamps as Plain, since they need no quotes."""
    if value is None:
        return None
    if attribute.type in _TEMPORAL:
        return Plain(value)
    if attribute.type in ("relation", "media"):
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
    """The attributes of a row that a file has to name: those with a value, or without their default."""
    found: dict[str, Any] = {}
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        if not is_empty(value) or attribute.has_default:  # a missing key would mean the default
            found[attribute.name] = encode(attribute, value)
    return found


def changed_keys(type_: Type, old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The trees of the attributes that differ between two documents' values, by name."""
    return {
        name: encode(attribute, new[name])
        for name, attribute in type_.attributes.items()
        if not attribute.derived and old.get(name) != new[name]
    }
