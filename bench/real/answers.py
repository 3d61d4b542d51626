"""Conversion of values from the API to the form of the module `expected`."""

from collections.abc import Iterator, Mapping
from typing import Any

from bench.real.expected import Attribute
from bench.real.layout import Components, ContentType

UPLOADS = "/uploads/"


def populate(content_type: ContentType) -> str:
    return "&".join(_populate("populate", content_type.attributes, content_type.components))


def normalise(attribute: Attribute, value: Any, components: Components) -> Any:
    """Convert a value from the API: relations become documentIds, media files become paths, and components
    lose their ids.
    """
    kind = attribute["type"]
    if kind == "relation":
        return [one["documentId"] for one in _listed(value)]
    if kind == "media":
        return [one["url"].removeprefix(UPLOADS) for one in _listed(value)]
    if kind == "dynamiczone":
        return [_normalise_component(one["__component"], one, components) for one in value or []]
    if kind == "component" and attribute.get("repeatable"):
        return [_normalise_component(attribute["component"], one, components) for one in value or []]
    if kind == "component" and value is not None:
        return _normalise_component(attribute["component"], value, components)
    return value


def _normalise_component(uid: str, value: Mapping[str, Any], components: Components) -> dict[str, Any]:
    entries = {
        name: normalise(attribute, value.get(name), components) for name, attribute in components[uid].items()
    }
    return {"__component": uid, **entries}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value] if value else []


def _populate(prefix: str, attributes: Mapping[str, Attribute], components: Components) -> Iterator[str]:
    for name, attribute in attributes.items():
        kind, here = attribute["type"], f"{prefix}[{name}]"
        if kind == "relation" and not attribute.get("private"):
            yield f"{here}[fields]=documentId,locale"
        elif kind == "media":
            yield f"{here}=true"
        elif kind == "component":
            yield from _populate_component(here, attribute["component"], components)
        elif kind == "dynamiczone":
            for uid in attribute["components"]:
                yield from _populate_component(f"{here}[on][{uid}]", uid, components)


def _populate_component(prefix: str, uid: str, components: Components) -> Iterator[str]:
    inner = list(_populate(f"{prefix}[populate]", components[uid], components))
    yield from inner or [f"{prefix}=true"]
