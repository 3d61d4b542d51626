"""What a query names in a schema: attributes, related types, and all types it involves."""

from collections.abc import Iterator, Set

from server.errors import invalid_key
from server.query.ast import And, Filter, Missing, Or, Query, Selection, Through
from server.schema.model import UPLOAD, USER, Attribute, Schema, Type

# --- fields ---------------------------------------------------------------------------------------

# Keys of a query that lead from the type asked for to an attribute.
AttributePath = tuple[str, ...]


def queried(type_: Type, key: str, path: AttributePath, param: str) -> Attribute:
    """The attribute that a filter or sort names; private ones, passwords and zones are refused."""
    attribute = type_.columns.get(key)
    if attribute is None:
        raise invalid_key(key, ".".join(path) or None, param)
    if not attribute.queryable:
        raise invalid_key(key, ".".join((*path, key)), param)
    return attribute


def target_of(schema: Schema, attribute: Attribute) -> Type | None:
    """The type that an attribute leads to, where there is one and only one."""
    if attribute.type == "media":
        return schema.types[UPLOAD]
    if attribute.type == "dynamiczone" or attribute.polymorphic:
        return None
    uid = attribute.component if attribute.type == "component" else attribute.target
    return schema.types.get(uid or "")


def targets_of(schema: Schema, attribute: Attribute) -> list[Type]:
    """Every type of which an attribute may hold something; none for types that are not here."""
    if attribute.type == "dynamiczone":
        return [schema.types[uid] for uid in attribute.components]
    if attribute.polymorphic and attribute.derived:
        return [t for t in schema.content_types if any(a.type == "media" for a in t.attributes.values())]
    if attribute.polymorphic:
        return [*schema.content_types, schema.types[UPLOAD], schema.types[USER]]
    target = target_of(schema, attribute)
    return [target] if target else []


# --- mentions -------------------------------------------------------------------------------------


def mentions(query: Query, uids: Set[str]) -> bool:
    """Whether a query is about documents of one of some types."""
    return any(uid in uids for uid in mentioned(query))


def mentioned(query: Query) -> Iterator[str]:
    """The uids of all types that a query is about, components too; some more than once."""
    yield query.type.uid
    yield from _selected(query.selection)


def conditions(selection: Selection) -> Iterator[str]:
    """The uids of the types through which a selection filters or sorts."""
    yield from _filtered(selection.filter)
    for key in selection.sort:
        for step in key.steps:
            yield step.target.uid


def _selected(selection: Selection) -> Iterator[str]:
    yield from conditions(selection)
    for node in selection.populate:
        for uid, inner in node.selections.items():
            yield uid
            yield from _selected(inner)


def _filtered(filter_: Filter) -> Iterator[str]:
    if isinstance(filter_, And | Or):
        for part in filter_.parts:
            yield from _filtered(part)
    elif isinstance(filter_, Missing):
        if filter_.target is not None:
            yield filter_.target.uid
    elif isinstance(filter_, Through):
        yield filter_.target.uid
        yield from _filtered(filter_.inner)
