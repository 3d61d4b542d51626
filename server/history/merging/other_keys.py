"""Merging the keys in a document's file that are not attributes of its content type."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from server.documents.file_keys import collect_other_keys
from server.documents.values import Component, components_in
from server.formats.edits import REMOVE, is_same_value
from server.formats.tree import Tree
from server.history.merging.sides import SideVersion
from server.schema.model import FILE_FIELDS, Attribute
from server.storage.read import parse
from server.write.context import values_of

_COMPONENT_KEYS = ("id", "__component")  # Allowed in every component.


def merge_other_keys(
    base: SideVersion | None, ours: SideVersion, theirs: SideVersion
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return two mappings: the keys that only theirs has changed, and the keys in conflict.

    They map each key to its value in theirs, or to REMOVE if theirs has removed the key.
    """
    only_theirs, both = dict[str, Any](), dict[str, Any]()
    base_tree, our_tree, their_tree = trees = [_tree(version) for version in (base, ours, theirs)]
    keys = [_other_keys(*side) for side in zip((base, ours, theirs), trees, strict=True)]
    for key in dict.fromkeys(chain(*keys)):
        old, one, two = (side.get(key, REMOVE) for side in (base_tree, our_tree, their_tree))
        if _equal(two, old) or _equal(two, one):
            continue
        if _equal(one, old):
            only_theirs[key] = two
        elif key not in FILE_FIELDS:
            both[key] = two
    return only_theirs, both


def changes_other_keys(base: SideVersion, other: SideVersion) -> bool:
    changed, _ = merge_other_keys(base, base, other)
    return bool(changed.keys() - set(FILE_FIELDS))


def _tree(version: SideVersion | None) -> Mapping[str, Tree]:
    if version is None:
        return {}
    type_ = version.document.type
    return collect_other_keys(type_, parse(version.path, version.data.decode(), type_.body))


def _other_keys(version: SideVersion | None, tree: Mapping[str, Tree]) -> Iterator[str]:
    if version is None:
        return
    attributes, values = version.document.type.attributes, values_of(version.document)
    for key in tree:
        if key not in attributes:
            if key != "updatedAt":
                yield key
        elif _has_unknown_component_keys(attributes[key], values.get(key), tree[key]):
            yield key


def _has_unknown_component_keys(attribute: Attribute, value: Any, tree: Tree) -> bool:
    if not attribute.holds_components:
        return False
    trees = tree if isinstance(tree, list) else [tree]
    pairs = zip(components_in(value), trees, strict=False)
    return any(
        _component_has_other_keys(component, tree) for component, tree in pairs if isinstance(tree, dict)
    )


def _component_has_other_keys(component: Component, tree: Mapping[str, Tree]) -> bool:
    type_ = component.type
    if type_.other_keys is None and not tree.keys() <= {*type_.attributes, *_COMPONENT_KEYS}:
        return True
    values = zip(type_.attributes.values(), component.values, strict=True)
    return any(
        _has_unknown_component_keys(attribute, value, tree.get(attribute.name)) for attribute, value in values
    )


def _equal(one: Any, other: Any) -> bool:
    return one is other or (one is not REMOVE and other is not REMOVE and is_same_value(one, other))
