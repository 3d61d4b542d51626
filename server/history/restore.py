"""The values of an earlier version as the body of a write, so that restoring is a write like any other."""

from collections.abc import Iterable, Mapping
from typing import Any

from server.documents.encode import encode
from server.documents.values import Component, components_in, is_empty
from server.history.differences import Values, plain
from server.index.snapshot import Snapshot
from server.schema.model import Attribute


def restored(
    attributes: Iterable[Attribute], values: Values, fields: Iterable[str], snapshot: Snapshot
) -> dict[str, Any]:
    """The data of a write that gives some attributes the values that they had.

    A file that is there no more is left out of a media attribute, since no write could name it.
    """
    wanted = set(fields)
    return {a.name: _input(a, values.get(a.name), snapshot) for a in attributes if a.name in wanted}


def _input(attribute: Attribute, value: Any, snapshot: Snapshot) -> Any:
    if is_empty(value):
        return [] if attribute.to_many else None
    if attribute.type == "media":
        files = [snapshot.media[path].id for path in value if path in snapshot.media]
        return files if attribute.to_many else next(iter(files), None)
    if attribute.holds_components:
        made = [
            _component(component, snapshot, zone=attribute.type == "dynamiczone")
            for component in components_in(value)
        ]
        return made if attribute.to_many else made[0]
    return plain(encode(attribute, value))


def _component(component: Component, snapshot: Snapshot, *, zone: bool) -> Mapping[str, Any]:
    inner = zip(component.type.attributes.values(), component.values, strict=True)
    made = {
        attribute.name: _input(attribute, value, snapshot)
        for attribute, value in inner
        if not attribute.derived and attribute.type != "password"  # Its hash would be taken for a password.
    }
    return {"__component": component.type.uid, **made} if zone else made
