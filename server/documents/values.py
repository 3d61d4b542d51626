"""The values of attributes: components, empty values, equality, and derived ids."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from server.formats.text_positions import KeyPath
from server.schema.model import Attribute, Type


class Component:
    """A component of a document. Equality ignores ids, because they depend on positions."""

    __slots__ = ("row", "type")

    def __init__(self, type_: Type, row: tuple[Any, ...]) -> None:
        self.type, self.row = type_, row

    @property
    def id(self) -> int:
        """The numeric id, which depends on the component's position (spec.md 2.2)."""
        return int(self.row[0])

    @property
    def values(self) -> tuple[Any, ...]:
        return self.row[1:]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Component) and self.type is other.type and self.values == other.values

    def __hash__(self) -> int:
        return hash(self.type.uid)

    def __reduce__(self) -> tuple[Any, ...]:
        return Component, (self.type, self.row)

    def __repr__(self) -> str:
        return f"{self.type.uid}{self.values!r}"


def components_in(value: Any) -> tuple[Component, ...]:
    return value if isinstance(value, tuple) else (value,) if value is not None else ()


def components_at(attribute: Attribute, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Component]]:
    if attribute.holds_components:
        for i, component in enumerate(components_in(value)):
            yield ((*path, i) if attribute.to_many else path), component


def empty_value(attribute: Attribute) -> Any:
    listed = attribute.holds_components and attribute.to_many
    return () if listed or attribute.has_targets else None


def is_empty(value: Any) -> bool:
    return value is None or value == ()


def same_values(old: object, new: object) -> bool:
    # Unlike ==, repr distinguishes between 1, true and 1.0.
    if old is new or type(old) is type(new) is str:
        return old == new
    return old == new and repr(old) == repr(new)


def derive_id(*parts: str) -> int:
    """Derive an id with 53 bits, so that a JSON number can represent it exactly.

    The id is the same in every clone of a site.
    """
    return int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big") >> 11


class HashedPassword(str):
    """The hash of a new password. `plain_text` is the password itself."""

    __slots__ = ("plain_text",)
    plain_text: str

    def __new__(cls, hashed: str, plain_text: str) -> "HashedPassword":
        made = super().__new__(cls, hashed)
        made.plain_text = plain_text
        return made
