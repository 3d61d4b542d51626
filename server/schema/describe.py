"""Content types and components as the clients that generate code read them (docs/clients.md)."""

from collections.abc import Mapping
from typing import Any

from server.schema.model import Schema, Type


def describe_type(schema: Schema, type_: Type) -> dict[str, Any]:
    """A content type: uid, API id, and its schema with the targets of relations."""
    plugin = type_.uid.partition("::")[2].partition(".")[0] if type_.uid.startswith("plugin::") else None
    described: dict[str, Any] = {"uid": type_.uid}
    if plugin:
        described["plugin"] = plugin
    described["apiID"] = type_.singular
    described["schema"] = {
        "displayName": type_.display,
        "singularName": type_.singular,
        "pluralName": type_.plural,
        "description": str(_section(type_.raw, "info").get("description", "")),
        "draftAndPublish": type_.draft_publish,
        "pluginOptions": _section(type_.raw, "pluginOptions"),
        "kind": type_.kind,
        "collectionName": str(type_.raw.get("collectionName", type_.plural)),
        "attributes": _attributes(schema, type_),
        "visible": plugin is None,
        "restrictRelationsTo": None,
    }
    return described


def describe_component(schema: Schema, type_: Type) -> dict[str, Any]:
    """A component: uid, category, and its schema."""
    category = type_.uid.partition(".")[0]
    return {
        "uid": type_.uid,
        "category": category,
        "apiId": type_.singular,
        "schema": {
            "displayName": type_.display,
            "description": str(_section(type_.raw, "info").get("description", "")),
            "icon": _section(type_.raw, "info").get("icon"),
            "collectionName": str(type_.raw.get("collectionName", "")),
            "pluginOptions": _section(type_.raw, "pluginOptions"),
            "attributes": _attributes(schema, type_),
        },
    }


def _section(raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key)
    return found if isinstance(found, dict) else {}


def _attributes(schema: Schema, type_: Type) -> dict[str, Any]:
    """The attributes as the schema file has them; relations also say what the other side is called."""
    written = _section(type_.raw, "attributes")
    found: dict[str, Any] = {}
    for name, attribute in type_.attributes.items():
        described = dict(written.get(name) or {"type": attribute.type})
        if attribute.type == "relation":
            described["relation"] = attribute.relation
            described["target"] = attribute.target
            described["targetAttribute"] = attribute.inversed_by or attribute.mapped_by
        if attribute.private:
            described["private"] = True
        found[name] = described
    return found
