"""The passwords of a body, hashed before the write: that takes long, and a write keeps all others waiting."""

from collections.abc import Mapping

from server.auth.passwords import hash_password
from server.formats.tree import Plain, Tree
from server.schema.model import Attribute, Schema, Type


class Hashed(str):
    """The hash of a password, which is not to be hashed again."""

    __slots__ = ()


def hash_passwords(schema: Schema, type_: Type, data: Mapping[str, Tree]) -> dict[str, Tree]:
    """The data of a body for a type, with the hashes of its passwords in place of them."""
    return {
        name: _hashed(schema, type_.attributes[name], tree) if name in type_.attributes else tree
        for name, tree in data.items()
    }


def _hashed(schema: Schema, attribute: Attribute, tree: Tree) -> Tree:
    if attribute.type == "password" and isinstance(tree, str) and type(tree) is not Plain:
        # What has odd characters in it may be no text at all: the validation says so, or hashes it.
        return Hashed(hash_password(tree)) if tree.isprintable() else tree
    if attribute.type in ("component", "dynamiczone"):
        if isinstance(tree, list):
            return [_hashed_component(schema, attribute, item) for item in tree]
        return _hashed_component(schema, attribute, tree)
    return tree


def _hashed_component(schema: Schema, attribute: Attribute, tree: Tree) -> Tree:
    if not isinstance(tree, dict):
        return tree
    type_ = schema.types.get(str(attribute.component or tree.get("__component")))
    return hash_passwords(schema, type_, tree) if type_ and type_.kind == "component" else tree
