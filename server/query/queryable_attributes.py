"""Attributes that filters and sort keys can use. Queries can't reveal the values of other attributes."""

from server.errors import invalid_key
from server.schema.model import UPLOAD, USER, Attribute, Schema, Type

# Strapi adds these attributes to content types; queries can't use them.
HIDDEN = ("createdBy", "updatedBy", "localizations")
HIDDEN_OF_FILES = ("folder", "folderPath")  # the same for media files

# the keys that lead from the requested content type to an attribute
AttributePath = tuple[str, ...]


def find_attribute(type_: Type, key: str, path: AttributePath, param: str) -> Attribute:
    """Return the attribute that a key names. Raises KeyNameError if it does not exist or can't be queried."""
    attribute = type_.columns.get(key)
    if attribute is None:
        named = (*path, key) if is_hidden(type_, key) else path
        raise invalid_key(key, ".".join(named) or None, param, type_.uid)
    if not attribute.queryable:
        raise invalid_key(key, ".".join((*path, key)), param)
    return attribute


def is_hidden(type_: Type, key: str) -> bool:
    """Return True if `key` is an attribute that Strapi adds to the type but hides from queries."""
    return (key in HIDDEN and type_.kind != "component") or (type_.uid == UPLOAD and key in HIDDEN_OF_FILES)


def target_of(schema: Schema, attribute: Attribute) -> Type | None:
    """Return the target type of a relation, media attribute or component.

    Return None for other attributes, and for attributes that can have several target types.
    """
    if attribute.type == "media":
        return schema.types[UPLOAD]
    if attribute.type == "dynamiczone" or attribute.polymorphic:
        return None
    uid = attribute.component if attribute.type == "component" else attribute.target
    return schema.types.get(uid or "")


def targets_of(schema: Schema, attribute: Attribute) -> list[Type]:
    """Return all target types that an attribute can have."""
    if attribute.type == "dynamiczone":
        return [schema.types[uid] for uid in attribute.components]
    if attribute.polymorphic and attribute.derived:
        return [t for t in schema.content_types if any(a.type == "media" for a in t.attributes.values())]
    if attribute.polymorphic:
        return [*schema.content_types, schema.types[UPLOAD], schema.types[USER]]
    target = target_of(schema, attribute)
    return [target] if target else []
