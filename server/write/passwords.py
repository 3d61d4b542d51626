"""Hashing of passwords in request bodies, which happens before the write lock is acquired."""

from collections.abc import Iterator, Mapping, Sequence

from server.auth.passwords import hash_password
from server.documents.values import HashedPassword
from server.errors import ValidationError
from server.formats.tree import Plain, Tree
from server.schema.model import Attribute, Schema, Type

MAX_PASSWORDS = 10  # Hashing one password takes 0.1 s.


def hash_passwords(
    schema: Schema, bodies: Sequence[tuple[Type, Mapping[str, Tree]]]
) -> list[dict[str, Tree]]:
    """Return the request bodies with their passwords hashed.

    Raises ValidationError if they contain too many passwords, or BusyError if too many passwords are waiting
    to be hashed.
    """
    passwords = sum(1 for body in bodies for _ in _passwords(schema, *body))
    if passwords > MAX_PASSWORDS:
        raise ValidationError(
            f"The request body contains {passwords} passwords; the limit is {MAX_PASSWORDS}"
        )
    return [_hash_object(schema, type_, data) for type_, data in bodies]


def _passwords(schema: Schema, type_: Type, data: Mapping[str, Tree]) -> Iterator[str]:
    for attribute, tree in values_in(schema, type_, data):
        if attribute.type == "password" and isinstance(tree, str):
            yield tree


def values_in(schema: Schema, type_: Type, data: Mapping[str, Tree]) -> Iterator[tuple[Attribute, Tree]]:
    """Yield each attribute in a request body with its value.

    Components are replaced by the attributes inside them.
    """
    for name, tree in data.items():
        attribute = type_.attributes.get(name)
        if attribute is None:
            continue
        if not attribute.holds_components:
            yield attribute, tree
            continue
        for item in tree if isinstance(tree, list) else [tree]:
            component = _type_of(schema, attribute, item)
            if component is not None and isinstance(item, dict):
                yield from values_in(schema, component, item)


def _type_of(schema: Schema, attribute: Attribute, tree: Tree) -> Type | None:
    if not isinstance(tree, dict):
        return None
    type_ = schema.types.get(str(attribute.component or tree.get("__component")))
    return type_ if type_ and type_.kind == "component" else None


def _hash_object(schema: Schema, type_: Type, data: Mapping[str, Tree]) -> dict[str, Tree]:
    return {
        name: _hash(schema, type_.attributes[name], tree) if name in type_.attributes else tree
        for name, tree in data.items()
    }


def _hash(schema: Schema, attribute: Attribute, tree: Tree) -> Tree:
    if attribute.type == "password" and isinstance(tree, str) and type(tree) is not Plain:
        # Strings with unprintable characters may be invalid. Validation rejects or hashes them later.
        return HashedPassword(hash_password(tree), tree) if tree.isprintable() else tree
    if attribute.holds_components:
        if isinstance(tree, list):
            return [_hash_component(schema, attribute, item) for item in tree]
        return _hash_component(schema, attribute, tree)
    return tree


def _hash_component(schema: Schema, attribute: Attribute, tree: Tree) -> Tree:
    type_ = _type_of(schema, attribute, tree)
    return _hash_object(schema, type_, tree) if type_ and isinstance(tree, dict) else tree
