"""The places in documents where a content type or component occurs."""

from collections.abc import Iterator, Mapping

from server.formats.text_positions import KeyPath
from server.formats.tree import Tree
from server.schema.model import Attribute, Schema, Type


def types_containing(schema: Schema, uid: str) -> frozenset[str]:
    """Return the uids of the content types whose documents can contain the type `uid`."""
    if schema.types[uid].kind != "component":
        return frozenset({uid})
    found = {uid}
    size = 0
    while size < len(found):  # until no more types are found
        size = len(found)
        found |= {
            other.uid
            for other in schema.types.values()
            if any(found.intersection(a.component_uids) for a in other.attributes.values())
        }
    return frozenset(type_.uid for type_ in schema.content_types if type_.uid in found)


def find_instances(
    schema: Schema, type_: Type, tree: Mapping[str, Tree], uid: str
) -> Iterator[tuple[KeyPath, Mapping[str, Tree]]]:
    """Yield the key path and the values of each instance of the type `uid` in a document."""
    if type_.uid == uid:
        yield (), tree
    for name, attribute in type_.attributes.items():
        if attribute.holds_components and name in tree:
            for at, inner, mapping in _components(schema, attribute, tree[name]):
                for below, found in find_instances(schema, inner, mapping, uid):
                    yield (name, *at, *below), found


def _components(
    schema: Schema, attribute: Attribute, value: Tree
) -> Iterator[tuple[KeyPath, Type, Mapping[str, Tree]]]:
    items = enumerate(value) if isinstance(value, list) else [(None, value)]
    for i, item in items:
        if isinstance(item, dict):
            type_ = schema.types.get(str(attribute.component or item.get("__component")))
            if type_ is not None:
                yield (() if i is None else (i,)), type_, item
