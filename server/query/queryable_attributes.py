"""The attributes that filters and sorts may name, and the types that attributes lead to.

Private attributes, passwords and zones are rejected here, so that no filter reveals their values.
"""

from server.errors import invalid_key
from server.schema.model import UPLOAD, USER, Attribute, Schema, Type

HIDDEN = ("createdBy", "updatedBy", "localizations")  # attributes of every type that queries can't compare
HIDDEN_OF_FILES = ("folder", "folderPath")  # the same for files

# Keys of a query, from the requested type to an attribute.
AttributePath = tuple[str, ...]


def find_attribute(type_: Type, key: str, path: AttributePath, param: str) -> Attribute:
    """Return the attribute that a filter or sort names.

    Raises KeyNameError if it is unknown, private, a password or a zone.
    """
    attribute = type_.columns.get(key)
    if attribute is None:
        named = (*path, key) if is_hidden(type_, key) else path
        raise invalid_key(key, ".".join(named) or None, param)
    if not attribute.queryable:
        raise invalid_key(key, ".".join((*path, key)), param)
    return attribute


def is_hidden(type_: Type, key: str) -> bool:
    """Return whether a name is a hidden attribute of a type; errors then name it with its path."""
    return (key in HIDDEN and type_.kind != "component") or (type_.uid == UPLOAD and key in HIDDEN_OF_FILES)


def target_of(schema: Schema, attribute: Attribute) -> Type | None:
    """Return the type that an attribute leads to, or None unless there is exactly one."""
    if attribute.type == "media":
        return schema.types[UPLOAD]
    if attribute.type == "dynamiczone" or attribute.polymorphic:
        return None
    uid = attribute.component if attribute.type == "component" else attribute.target
    return schema.types.get(uid or "")


def targets_of(schema: Schema, attribute: Attribute) -> list[Type]:
    """Return all types that an attribute may lead to, without types that the schema lacks."""
    if attribute.type == "dynamiczone":
        return [schema.types[uid] for uid in attribute.components]
    if attribute.polymorphic and attribute.derived:
        return [t for t in schema.content_types if any(a.type == "media" for a in t.attributes.values())]
    if attribute.polymorphic:
        return [*schema.content_types, schema.types[UPLOAD], schema.types[USER]]
    target = target_of(schema, attribute)
    return [target] if target else []
