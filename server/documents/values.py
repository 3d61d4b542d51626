"""What the attributes of a document hold: values, components, and what stands for no value."""

from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

from server.formats.text_positions import KeyPath
from server.schema.model import Attribute, Type


class Component:
    """One component of a document: its type and its row (id, then the attributes).

    Two are equal when their attributes are: the id comes from the place, which a copy does not share.
    """

    __slots__ = ("row", "type")

    def __init__(self, type_: Type, row: tuple[Any, ...]) -> None:
        self.type, self.row = type_, row

    @property
    def id(self) -> int:
        """The derived number (spec.md 2.2)."""
        return int(self.row[0])

    @property
    def values(self) -> tuple[Any, ...]:
        """The values of the attributes, in the order of `type.attributes`."""
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
    """The components that the value of an attribute holds, which is one of those that may hold some."""
    return value if isinstance(value, tuple) else (value,) if value is not None else ()


def components_at(attribute: Attribute, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Component]]:
    """The components in an attribute's value, none of other attributes, each with its path in the document.

    `path` is that of the attribute; in a list, the position of the component follows.
    """
    if attribute.holds_components:
        for i, component in enumerate(components_in(value)):
            yield ((*path, i) if attribute.to_many else path), component


def empty_value(attribute: Attribute) -> Any:
    """What an attribute holds that has no value: relations, media and lists an empty tuple, others None."""
    listed = attribute.holds_components and attribute.to_many
    return () if listed or attribute.has_targets else None


def is_empty(value: Any) -> bool:
    """Whether an attribute that holds this has no value."""
    return value is None or value == ()


def same_values(old: object, new: object) -> bool:
    """Whether two values, or rows of them, are the same in JSON as well, where 1 is neither true nor 1.0."""
    if old is new or type(old) is type(new) is str:
        return old == new
    return old == new and repr(old) == repr(new)


def identify(*parts: str) -> int:
    """A 53-bit id that is the same in every clone: exact as a JSON number in every client."""
    return int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big") >> 11


class Hashed(str):
    """The hash of a password, which is not to be hashed again, with the text that was `typed`."""

    __slots__ = ("typed",)
    typed: str

    def __new__(cls, hashed: str, typed: str) -> "Hashed":
        """Return a hash with the text that it was made of."""
        made = super().__new__(cls, hashed)
        made.typed = typed
        return made
