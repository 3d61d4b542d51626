"""What a query can reach in a schema: attributes it may name, and the types that they lead to."""

from functools import lru_cache

from server.errors import invalid_key
from server.schema.model import UPLOAD, Attribute, Schema, Type


def queried(type_: Type, key: str, path: tuple[str, ...], param: str) -> Attribute:
    """The attribute that a filter or sort names; private ones, passwords and zones are refused."""
    attribute = type_.columns.get(key)
    if attribute is None:
        raise invalid_key(key, ".".join(path) or None, param)
    if attribute.private or attribute.type in ("password", "dynamiczone"):
        raise invalid_key(key, ".".join((*path, key)), param)
    return attribute


def selectable(attribute: Attribute) -> bool:
    """Whether `fields` may name it (spec.md 2.3)."""
    return attribute.scalar and not attribute.private and attribute.type != "password"


@lru_cache(maxsize=512)  # asked for every attribute that a request populates
def populatable(type_: Type) -> tuple[str, ...]:
    """The names that `populate` may have, in the order of `*`."""
    names = (a.name for a in type_.attributes.values() if not a.scalar and not a.private)
    return (*names, "localizations") if type_.localized else tuple(names)


def target_of(schema: Schema, attribute: Attribute) -> Type | None:
    """The type that an attribute leads to, where there is one and only one."""
    if attribute.type == "media":
        return schema.types[UPLOAD]
    if attribute.type == "dynamiczone" or attribute.relation in ("morphToOne", "morphToMany"):
        return None
    uid = attribute.component if attribute.type == "component" else attribute.target
    return schema.types.get(uid or "")


def targets_of(schema: Schema, attribute: Attribute) -> list[Type]:
    """Every type of which an attribute may hold something; none for types that are not here."""
    if attribute.type == "dynamiczone":
        return [schema.types[uid] for uid in attribute.components]
    if attribute.relation in ("morphToOne", "morphToMany"):
        return [*schema.content_types, schema.types[UPLOAD]]
    target = target_of(schema, attribute)
    return [target] if target else []
