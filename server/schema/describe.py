"""JSON descriptions of types for code generators (docs/existing-sites.md)."""

from collections.abc import Mapping
from typing import Any

from server.schema.model import UPLOAD, USER, Attribute, Schema, Type
from server.schema.plugins import PLUGIN_TYPES, Raw


def describe_types(schema: Schema) -> list[dict[str, Any]]:
    plugins = [_describe_type(uid, _with_others(schema, uid, raw)) for uid, raw in PLUGIN_TYPES.items()]
    return [*plugins, *(describe_type(type_) for type_ in schema.content_types)]


def describe_visible_type(schema: Schema, uid: str) -> dict[str, Any] | None:
    return next((d for d in describe_types(schema) if d["uid"] == uid and d["schema"]["visible"]), None)


def describe_type(type_: Type) -> dict[str, Any]:
    """Return the description of a content type that the site defines."""
    options = {**_section(type_.raw, "options"), "draftAndPublish": type_.draft_publish}
    info = {"displayName": type_.display, "singularName": type_.singular, "pluralName": type_.plural}
    raw = {
        "collectionName": type_.plural,
        "pluginOptions": {},
        **type_.raw,
        "kind": type_.kind,
        "info": {**_section(type_.raw, "info"), **info},
        "options": options,
    }
    return _describe_type(type_.uid, raw)


def describe_component(type_: Type) -> dict[str, Any]:
    """Return the description of a component."""
    info = _section(type_.raw, "info")
    optional = {"icon": info.get("icon"), "pluginOptions": type_.raw.get("pluginOptions")}
    return {
        "uid": type_.uid,
        "category": type_.uid.partition(".")[0],
        "apiId": type_.singular,
        "schema": {
            "displayName": type_.display,
            "description": str(info.get("description", "")),
            "collectionName": str(type_.raw.get("collectionName", "")),
            **{key: value for key, value in optional.items() if value is not None},
            "attributes": _attributes(_section(type_.raw, "attributes")),
        },
    }


def _describe_type(uid: str, raw: Raw) -> dict[str, Any]:
    namespace, _, name = uid.partition("::")
    info, options = _section(raw, "info"), raw.get("pluginOptions")
    builder = _section(options, "content-type-builder") if isinstance(options, dict) else {}
    visible = builder.get("visible", True) is True
    return {
        "uid": uid,
        **({"plugin": name.partition(".")[0]} if namespace == "plugin" else {}),
        "apiID": info["singularName"],
        "schema": {
            "draftAndPublish": False,
            **_section(raw, "options"),
            **{key: info[key] for key in ("displayName", "singularName", "pluralName")},
            "description": str(info.get("description", "")),
            **({} if options is None else {"pluginOptions": options}),
            "kind": raw["kind"],
            "collectionName": str(raw["collectionName"]),
            "attributes": _attributes(_section(raw, "attributes")),
            "visible": visible,
            "restrictRelationsTo": None if visible and uid != UPLOAD else [],
        },
    }


def _with_others(schema: Schema, uid: str, raw: Raw) -> Raw:
    if uid != USER:
        return raw
    own = raw["attributes"]
    others = {n: _derived_raw(a) for n, a in schema.types[USER].attributes.items() if n not in own}
    return {**raw, "attributes": {**own, **others}}


def _derived_raw(attribute: Attribute) -> Raw:
    sides = {"inversedBy": attribute.inversed_by, "mappedBy": attribute.mapped_by}
    return {
        "type": attribute.type,
        "relation": attribute.relation,
        "target": attribute.target,
        "private": attribute.private,
        **{key: value for key, value in sides.items() if value},
    }


def _section(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key)
    return found if isinstance(found, dict) else {}


def _attributes(written: Raw) -> dict[str, Any]:
    return {name: _attribute(raw) for name, raw in written.items() if isinstance(raw, dict)}


def _attribute(raw: Raw) -> dict[str, Any]:
    kind = raw.get("type")
    if kind not in ("media", "relation"):
        return dict(raw)
    flags = {key: bool(raw.get(key)) for key in ("required", "private")}
    fixed = {"configurable": False} if raw.get("configurable") is False else {}
    if kind == "relation":
        description = {key: value for key, value in raw.items() if key != "configurable"}
        return {
            **description,
            "targetAttribute": raw.get("inversedBy") or raw.get("mappedBy"),
            **fixed,
            **flags,
        }
    optional = {key: raw[key] for key in ("allowedTypes", "pluginOptions") if key in raw}
    return {"type": kind, "multiple": bool(raw.get("multiple")), **flags, **fixed, **optional}
