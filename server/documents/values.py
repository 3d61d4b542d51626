"""What a tree means under an attribute: text, numbers, dates, relations, components.

The table READERS has one function for each attribute type. A value that is not of its type is a
Mismatch; every mismatch of a document is found, not the first.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from hashlib import blake2b
from typing import Any

from server.documents.ids import id_of_reference
from server.documents.timestamps import read_date, read_time, read_timestamp
from server.formats.positions import KeyPath
from server.formats.scalars import MAX_DIGITS, is_null, typed
from server.formats.tree import Plain, Tree
from server.schema.model import Attribute, Type
from server.spelling import suggestion

MAX_EXPONENT = 400  # of a decimal, which is written out in full
_INTEGER = re.compile(r"[-+]?\d+")
_YES = frozenset({"true", "yes", "on"})
_NO = frozenset({"false", "no", "off"})


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


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that its attribute can't have: where, what was expected, whether it must be fixed."""

    path: KeyPath
    message: str
    fix: str = ""
    warning: bool = False
    rule: str = "value"


@dataclass(slots=True)
class Reading:
    """The reading of one document: the types, the seed of component ids, and what was wrong."""

    types: Mapping[str, Type]
    seed: str = ""
    wrong: list[Mismatch] = field(default_factory=list)

    def fail(
        self, path: KeyPath, message: str, fix: str = "", *, warning: bool = False, rule: str = "value"
    ) -> None:
        """Note a mismatch and go on."""
        self.wrong.append(Mismatch(path, message, fix, warning, rule))


class Unreadable(ValueError):
    """Raised by a reader: what the type expected, and how to fix it."""

    def __init__(self, expected: str, fix: str = "") -> None:
        super().__init__(expected)
        self.expected, self.fix = expected, fix


def identify(*parts: str) -> int:
    """A 53-bit id that is the same in every clone: exact as a JSON number in every client."""
    return int.from_bytes(blake2b("\0".join(parts).encode(), digest_size=8).digest(), "big") >> 11


def read_attributes(type_: Type, tree: Mapping[str, Tree], path: KeyPath, reading: Reading) -> list[Any]:
    """The values of a type's attributes, in order, out of a mapping; unknown keys are warned of."""
    return [
        read_value(a, tree.get(name, _ABSENT), (*path, name), reading) for name, a in type_.attributes.items()
    ]


_ABSENT: Any = object()


def read_value(attribute: Attribute, tree: Tree, path: KeyPath, reading: Reading) -> Any:
    """One attribute's value. An absent key has the attribute's default, an explicit null is None."""
    kind = attribute.type
    if tree is _ABSENT:
        tree = attribute.default if attribute.has_default else None
    if is_null(tree):
        return empty_value(attribute)
    if kind == "component":
        return _read_component(attribute, tree, path, reading)
    if kind == "dynamiczone":
        return _read_zone(attribute, tree, path, reading)
    try:
        return READERS[kind](tree, attribute)
    except Unreadable as error:
        reading.fail(path, f"expected {error.expected}, found {_shown(tree)}", error.fix)
        return None


def empty_value(attribute: Attribute) -> Any:
    """What an attribute holds that has no value: relations, media and lists an empty tuple, others None."""
    listed = attribute.holds_components and attribute.to_many
    return () if listed or attribute.has_targets else None


def is_empty(value: Any) -> bool:
    """Whether an attribute that holds this has no value."""
    return value is None or value == ()


def _shown(tree: Tree) -> str:
    if isinstance(tree, dict):
        return "a mapping"
    if isinstance(tree, list):
        return "a list"
    text = str(tree) if len(str(tree)) <= 40 else str(tree)[:37] + "…"
    return f'"{text}"' if isinstance(tree, str) else str(tree).lower() if isinstance(tree, bool) else text


def _text(tree: Tree, _: Attribute) -> str:
    if isinstance(tree, str):
        return str(tree)
    raise Unreadable("text", "" if isinstance(tree, dict | list) else "put it in quotes")


def _enumeration(tree: Tree, attribute: Attribute) -> str:
    text = _text(tree, attribute)
    if text not in attribute.enum:
        raise Unreadable("one of " + ", ".join(attribute.enum), suggestion(text, attribute.enum))
    return text


def _integer(tree: Tree, _: Attribute) -> int:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return tree
    if isinstance(tree, str) and len(tree) <= MAX_DIGITS:
        value = tree.strip()
        if _INTEGER.fullmatch(value):
            return int(value)
        number = typed(Plain(value)) if not value.lower().lstrip("+-").startswith((".inf", ".nan")) else None
        if isinstance(number, int) and not isinstance(number, bool):
            return number
        if isinstance(number, float) and number.is_integer():
            return int(number)
    raise Unreadable("a whole number")


def _float(tree: Tree, _: Attribute) -> float | int:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return tree
    if isinstance(tree, str):
        try:
            number = float(tree)
        except ValueError:
            number = math.nan
        if math.isfinite(number):
            return int(tree) if _INTEGER.fullmatch(tree) else number
    raise Unreadable("a number")


def _decimal(tree: Tree, _: Attribute) -> Decimal:
    if isinstance(tree, int) and not isinstance(tree, bool):
        return Decimal(tree)
    if isinstance(tree, str):
        try:
            number = Decimal(tree.strip())
        except InvalidOperation:
            number = Decimal("nan")
        if number.is_finite() and abs(number.adjusted()) <= MAX_EXPONENT and len(tree) <= MAX_DIGITS:
            return number
    raise Unreadable("a number")


def _boolean(tree: Tree, _: Attribute) -> bool:
    if isinstance(tree, bool):
        return tree
    if isinstance(tree, str) and tree.lower() in _YES | _NO:
        return tree.lower() in _YES
    raise Unreadable("true or false")


def _temporal(read: Callable[[str], str], expected: str) -> Callable[[Tree, Attribute], str]:
    def reader(tree: Tree, _: Attribute) -> str:
        if isinstance(tree, str) or (isinstance(tree, int) and not isinstance(tree, bool)):
            try:
                return read(str(tree))
            except ValueError:
                pass
        raise Unreadable(expected)

    return reader


def _json(tree: Tree, _: Attribute) -> Any:
    try:
        return typed(tree)
    except ValueError as error:
        raise Unreadable("a JSON value", str(error)) from error


def _array(tree: Tree, attribute: Attribute) -> Any:
    if not isinstance(tree, list):
        raise Unreadable("a list")
    return _json(tree, attribute)


# Of a block's keys, those that are text whatever they look like.
_BLOCK_TEXT = frozenset({"type", "text", "url", "format", "language", "name", "alternativeText", "caption"})


def _blocks(tree: Tree, attribute: Attribute) -> Any:
    if not isinstance(tree, list) or not all(isinstance(item, dict) for item in tree):
        raise Unreadable("a list of blocks")
    return [_block(item, attribute) for item in tree]


def _block(tree: Tree, attribute: Attribute) -> Any:
    if isinstance(tree, dict):
        return {
            key: str(value) if key in _BLOCK_TEXT and isinstance(value, str) else _block(value, attribute)
            for key, value in tree.items()
        }
    if isinstance(tree, list):
        return [_block(item, attribute) for item in tree]
    return _json(tree, attribute)


def read_target(tree: Tree, attribute: Attribute) -> Any:
    """One entry of a relation or media attribute as a row holds it. Raises Unreadable."""
    if attribute.type == "media":
        if isinstance(tree, str):
            return str(tree).lstrip("/").removeprefix("uploads/")
        raise Unreadable("a path below uploads/")
    return _target(tree, attribute.morph)


def _relation(tree: Tree, attribute: Attribute) -> tuple[Any, ...]:
    if attribute.derived:
        raise Unreadable("nothing: the other side has this relation", f'write "{attribute.mapped_by}" there')
    found = tree if isinstance(tree, list) else [tree]
    if not attribute.to_many and len(found) > 1:
        raise Unreadable("one documentId")
    return tuple(dict.fromkeys(read_target(item, attribute) for item in found if not is_null(item)))


def _target(tree: Tree, morph: bool) -> Any:
    if isinstance(tree, dict):
        document_id, uid = tree.get("documentId"), tree.get("__type")
        if isinstance(document_id, str) and (not morph or isinstance(uid, str)):
            return (str(uid), str(document_id)) if morph else str(document_id)
    elif isinstance(tree, str) and not morph:
        return id_of_reference(tree)
    raise Unreadable("a mapping of __type and documentId" if morph else "a documentId")


def _media(tree: Tree, attribute: Attribute) -> tuple[str, ...]:
    found = tree if isinstance(tree, list) else [tree]
    if not attribute.multiple and len(found) > 1:
        raise Unreadable("one path below uploads/")
    return tuple(dict.fromkeys(read_target(i, attribute) for i in found if not is_null(i)))


READERS: Mapping[str, Callable[[Tree, Attribute], Any]] = {
    "string": _text,
    "text": _text,
    "richtext": _text,
    "email": _text,
    "password": _text,
    "uid": _text,
    "enumeration": _enumeration,
    "integer": _integer,
    "biginteger": _integer,
    "float": _float,
    "decimal": _decimal,
    "boolean": _boolean,
    "date": _temporal(read_date, "a date such as 2024-02-29"),
    "time": _temporal(read_time, "a time such as 10:20:30"),
    "datetime": _temporal(read_timestamp, "a timestamp such as 2024-02-29T10:20:30Z"),
    "timestamp": _temporal(read_timestamp, "a timestamp such as 2024-02-29T10:20:30Z"),
    "json": _json,
    "array": _array,
    "blocks": _blocks,
    "relation": _relation,
    "media": _media,
}


def _read_component(attribute: Attribute, tree: Tree, path: KeyPath, reading: Reading) -> Any:
    type_ = reading.types[attribute.component or ""]
    if not attribute.repeatable:
        return _read_one(type_, tree, path, reading)
    if not isinstance(tree, list):
        reading.fail(path, f"expected a list, found {_shown(tree)}", "write each component below a dash")
        return ()
    found = (_read_one(type_, item, (*path, i), reading) for i, item in enumerate(tree))
    return tuple(component for component in found if component is not None)


def _read_one(type_: Type, tree: Tree, path: KeyPath, reading: Reading) -> Component | None:
    if not isinstance(tree, dict):
        reading.fail(
            path, f"expected a mapping, found {_shown(tree)}", f"write the attributes of {type_.uid}"
        )
        return None
    warn_unknown(type_, tree, path, reading, allowed=("id", "__component"))
    values = read_attributes(type_, tree, path, reading)
    return Component(type_, (identify(reading.seed, *map(str, path)), *values))


def _read_zone(attribute: Attribute, tree: Tree, path: KeyPath, reading: Reading) -> tuple[Component, ...]:
    if not isinstance(tree, list):
        reading.fail(path, f"expected a list, found {_shown(tree)}", "write each component below a dash")
        return ()
    found = []
    for i, item in enumerate(tree):
        uid = item.get("__component") if isinstance(item, dict) else None
        if uid not in attribute.components:
            hint = suggestion(str(uid), attribute.components)
            fix = hint or "one of " + ", ".join(attribute.components)
            what = f'the component "{uid}" has no place here' if uid else "an entry without __component"
            reading.fail((*path, i), what, fix)
            continue
        component = _read_one(reading.types[str(uid)], item, (*path, i), reading)
        if component:
            found.append(component)
    return tuple(found)


def read_own_id(tree: Mapping[str, Tree], otherwise: str, reading: Reading) -> str:
    """The documentId that a file says; `otherwise` where it says none."""
    written = tree.get("documentId")
    if is_null(written):
        return otherwise
    if isinstance(written, str) and written and "/" not in written:
        return str(written)
    reading.fail(("documentId",), "a documentId is text without /", "put it in quotes or remove it")
    return otherwise


def read_own_timestamp(tree: Mapping[str, Tree], name: str, otherwise: str, reading: Reading) -> str:
    """The createdAt, updatedAt or publishedAt that a file says; `otherwise` where it says none."""
    written = tree.get(name)
    if is_null(written):
        return otherwise
    try:
        return read_timestamp(str(written))
    except ValueError:
        fix = "write it as 2024-02-29T10:20:30Z"
        reading.fail((name,), f'"{written}" is no timestamp', fix, warning=True)
        return otherwise


def warn_unknown(
    type_: Type, tree: Mapping[str, Tree], path: KeyPath, reading: Reading, allowed: tuple[str, ...]
) -> None:
    """Warn of keys that the type does not have; they stay in the file and are not served."""
    for key in tree:
        if key not in type_.attributes and key not in allowed:
            fix = suggestion(key, type_.attributes) or f"add it to {type_.path} or remove it"
            what = f'"{key}" is no attribute of {type_.uid}'
            reading.fail((*path, key), what, fix, warning=True, rule="unknown-key")
