"""Restoring earlier versions of documents by writing their values again."""

from collections.abc import Iterable, Mapping
from typing import Any

from server.documents.encode import encode
from server.documents.password_masks import mask_hashes
from server.documents.values import Component, components_in, is_empty
from server.history.differences import Values, plain
from server.history.viewer import Viewer
from server.schema.model import Attribute


def restore_values(
    attributes: Iterable[Attribute], values: Values, fields: Iterable[str], viewer: Viewer
) -> dict[str, Any]:
    # Leave out values that a write would reject or misinterpret, such as masked password hashes.
    names = set(fields)
    data = {a.name: _input(a, values.get(a.name), viewer) for a in attributes if a.name in names}
    return {name: value for name, value in data.items() if mask_hashes(value) == value}


def _input(attribute: Attribute, value: Any, viewer: Viewer) -> Any:
    if is_empty(value):
        return [] if attribute.to_many else None
    if attribute.type == "media":
        files = [
            viewer.state.snapshot.media[path].id for path in value if path in viewer.state.snapshot.media
        ]
        return files if attribute.to_many else next(iter(files), None)
    if attribute.holds_components:
        items = [
            _component(component, viewer, is_zone=attribute.type == "dynamiczone")
            for component in components_in(value)
        ]
        return items if attribute.to_many else items[0]
    return plain(encode(attribute, viewer.visible_targets(attribute, value)))


def _component(component: Component, viewer: Viewer, *, is_zone: bool) -> Mapping[str, Any]:
    inner = zip(component.type.attributes.values(), component.values, strict=True)
    members = {
        attribute.name: _input(attribute, value, viewer)
        for attribute, value in inner
        if not attribute.derived
        and attribute.type != "password"  # The write would hash the stored hash again.
        if not viewer.is_hidden_elsewhere(component.type, attribute)
    }
    members = {name: value for name, value in members.items() if mask_hashes(value) == value}
    return {"__component": component.type.uid, **members} if is_zone else members
