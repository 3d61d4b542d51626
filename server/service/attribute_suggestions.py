"""Suggestions for mistyped attribute names in queries."""

from collections.abc import Iterator

from server.auth.permissions import Actor, may_find
from server.errors import SUGGESTION, KeyNameError
from server.schema.model import UPLOAD, Attribute, Schema, Type
from server.schema.spelling import Suggestions

_MAX_NAME_CHARS = 100
# Attributes that Strapi has and Bifolio does not: a client that sends them has not mistyped another name.
_CREATORS = frozenset({"createdBy", "updatedBy"})


def suggest_attribute(error: KeyNameError, actor: Actor, schema: Schema) -> None:
    """If a query contains a mistyped attribute, add the most similar name to `error.details`.

    Only attributes that the actor may see are suggested. The error message stays the same as in Strapi.
    """
    type_, key = schema.types.get(error.inside), str(error.details["key"])[:_MAX_NAME_CHARS]
    if type_ is None or key in type_.columns or key in _CREATORS or not _may_see_type(type_, actor, schema):
        return
    usable = (a for a in type_.columns.values() if a.selectable or error.details["param"] != "fields")
    names = [a.name for a in usable if _is_usable(a, actor)]
    name, order = _split_sort_key(key) if error.details["param"] == "sort" else (key, "")
    near = name if name in names else Suggestions().nearest(name, names)
    if near:
        error.details[SUGGESTION] = f"{near}{order}"


def _split_sort_key(key: str) -> tuple[str, str]:
    name, _, order = key.lstrip("-+").partition(" ")
    return name, ":desc" if key.startswith("-") or order.strip().lower() == "desc" else ""


def _may_see_type(type_: Type, actor: Actor, schema: Schema) -> bool:
    if type_.uid == UPLOAD or may_find(actor, type_.uid):
        return True
    seen = (each for each in schema.content_types if may_find(actor, each.uid))
    return any(type_.uid in _collect_components(each, schema, set()) for each in seen)


def _collect_components(type_: Type, schema: Schema, found: set[str]) -> set[str]:
    for uid in _component_uids(type_):
        if uid not in found:
            found.add(uid)
            _collect_components(schema.types[uid], schema, found)
    return found


def _component_uids(type_: Type) -> Iterator[str]:
    for attribute in type_.attributes.values():
        if attribute.visible:
            yield from attribute.component_uids


def _is_usable(attribute: Attribute, actor: Actor) -> bool:
    target = attribute.target if attribute.type == "relation" else None
    return attribute.visible and (target is None or may_find(actor, target))
