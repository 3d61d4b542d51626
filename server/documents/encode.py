"""Conversion between the values of a document and the content of its file."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from server.documents.advice import advice, component_advice, timestamp_advice
from server.documents.blocks import unreadable_members
from server.documents.file_keys import spread_other_keys
from server.documents.ids import to_nfc
from server.documents.password_masks import mask_hashes
from server.documents.readers import READERS, InvalidValue, read_target
from server.documents.timestamps import read_timestamp
from server.documents.values import Component, components_in, derive_id, empty_value, is_empty, same_values
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree, describe_value, is_null
from server.schema.model import Attribute, Type
from server.schema.spelling import suggestion

_TEMPORAL = frozenset({"date", "time", "datetime", "timestamp"})


def encode(attribute: Attribute, value: Any) -> Any:
    """Convert an attribute's value to the form in which it is written to a file."""
    if value is None:
        return None
    if attribute.type in _TEMPORAL:
        return Plain(value)
    if attribute.has_targets:
        targets = [_target(target) for target in value]
        return targets if attribute.to_many else (targets[0] if targets else None)
    if attribute.type == "component":
        return [_component(c) for c in value] if attribute.repeatable else _component(value)
    if attribute.type == "dynamiczone":
        return [{"__component": c.type.uid, **_component(c)} for c in value]
    return value


def _target(target: Any) -> Any:
    if isinstance(target, tuple):
        return {"__type": target[0], "documentId": target[1]}
    return target


def _component(component: Component) -> dict[str, Any]:
    return encode_attributes(component.type, component.values)


def encode_attributes(type_: Type, values: Any) -> dict[str, Any]:
    """Convert a document's values to the keys and values of a file.

    An empty value is left out, unless its attribute has a default.
    """
    found: dict[str, Any] = {}
    for attribute, value in zip(type_.attributes.values(), values, strict=True):
        if (
            not is_empty(value) or attribute.has_default
        ):  # If the key were missing, reading would return the default.
            found[attribute.name] = encode(attribute, value)
    return spread_other_keys(type_, found)


def changed_keys(
    type_: Type, old: Mapping[str, Any], new: Mapping[str, Any], tree: Mapping[str, Tree]
) -> dict[str, Any]:
    """Return the keys and values to write in order to change a document's values from `old` to `new`.

    `tree` is the parsed file. Unchanged values inside components are copied from it.
    """
    return {
        name: _encode_changed(attribute, old.get(name), new[name], tree.get(name))
        for name, attribute in type_.attributes.items()
        if not attribute.derived and not same_values(old.get(name), new[name])
    }


def _encode_changed(attribute: Attribute, old: Any, new: Any, tree: Tree) -> Any:
    encoded = encode(attribute, new)
    if not attribute.holds_components:
        return encoded
    before, after = components_in(old), components_in(new)
    trees = tree if isinstance(tree, list) else [tree]
    if not after or len(trees) != len(before) or not all(isinstance(item, dict) for item in trees):
        return encoded
    made = list(encoded) if isinstance(encoded, list) else [encoded]
    for i, at in enumerate(_match_components(before, after)):
        if at is not None:
            made[i] = _component_changed(before[at], after[i], trees[at])
    return made if isinstance(encoded, list) else made[0]


def _match_components(before: tuple[Component, ...], after: tuple[Component, ...]) -> Iterator[int | None]:
    places: dict[tuple[str, int], int] = {}
    for place, component in enumerate(before):
        places.setdefault((component.type.uid, component.id), place)
    kept = {component.id for component in after}
    for place, component in enumerate(after):
        free = place < len(before) and before[place].type is component.type and before[place].id not in kept
        yield places.get((component.type.uid, component.id), place if free else None)


def _component_changed(old: Component, new: Component, tree: dict[str, Tree]) -> dict[str, Any]:
    found: dict[str, Any] = dict(tree)
    for (name, attribute), before, after in zip(
        new.type.attributes.items(), old.values, new.values, strict=True
    ):
        if same_values(before, after):
            continue
        if is_empty(after) and not attribute.has_default:
            found.pop(name, None)
        else:
            found[name] = _encode_changed(attribute, before, after, tree.get(name))
    return found


# --- decode ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A value that is invalid for its attribute. If `warning` is set, the document is still served."""

    path: KeyPath
    message: str
    fix: str = ""
    warning: bool = False
    rule: str = "value"


@dataclass(slots=True)
class Reading:
    """Options for reading one document, and the invalid values (`mismatches`) that were found.

    The ids of components are derived from `seed`. If `masks_hashes` is set, password hashes are also masked
    in attributes of other types. If `keeps_targets` is set, a list of targets keeps its valid targets even if
    others are invalid.
    """

    types: Mapping[str, Type]
    seed: str = ""
    mismatches: list[Mismatch] = field(default_factory=list)
    masks_hashes: bool = False
    keeps_targets: bool = False

    def add_mismatch(
        self, path: KeyPath, message: str, fix: str = "", *, warning: bool = False, rule: str = "value"
    ) -> None:
        self.mismatches.append(Mismatch(path, message, fix, warning, rule))


def read_attributes(type_: Type, tree: Mapping[str, Tree], path: KeyPath, reading: Reading) -> list[Any]:
    return [
        read_value(a, tree.get(name, ABSENT), (*path, name), reading) for name, a in type_.attributes.items()
    ]


ABSENT: Any = object()
NULL_TEXT_MESSAGE = 'found the string "null" where null was probably meant'
# Browser-based editors write an empty string for a cleared field. For these types, it means null.
_NEVER_EMPTY_TEXT = frozenset(
    {"integer", "biginteger", "float", "decimal", "boolean", "enumeration", "relation", "media"}
    | {"date", "time", "datetime", "timestamp"}
)
# Attributes of these types can contain password hashes from an earlier schema.
_MAY_HAVE_HASHES = frozenset({"string", "text", "richtext", "email", "uid", "json", "array", "blocks"})


def read_value(attribute: Attribute, tree: Tree, path: KeyPath, reading: Reading) -> Any:
    """Convert a parsed value to the value of an attribute, and add any mismatches to `reading`.

    A missing key means the attribute's default (except for a password), and null means the empty value.
    """
    kind = attribute.type
    if tree is ABSENT:
        tree = attribute.default if attribute.has_default and kind != "password" else None
    if is_null(tree) or (tree == "" and kind in _NEVER_EMPTY_TEXT):
        return empty_value(attribute)
    if kind == "component":
        return _read_component(attribute, tree, path, reading)
    if kind == "dynamiczone":
        return _read_zone(attribute, tree, path, reading)
    if kind == "blocks":
        for at in unreadable_members(tree):
            reading.add_mismatch(
                (*path, *at),
                NULL_TEXT_MESSAGE,
                "write null without quotes, unless you mean the string",
                warning=True,
            )
    try:
        value = READERS[kind](tree, attribute)
        return mask_hashes(value) if reading.masks_hashes and kind in _MAY_HAVE_HASHES else value
    except InvalidValue as error:
        fix = error.fix or advice(attribute, tree)
        reading.add_mismatch(path, f"must be {error.expected} (found {_as_text(tree)})", fix)
        is_list = isinstance(tree, list) and attribute.to_many and not attribute.derived
        keeps = reading.keeps_targets and attribute.has_targets and is_list
        return tuple(_readable_targets(attribute, tree)) if keeps else None


def _readable_targets(attribute: Attribute, items: list[Tree]) -> Iterator[Any]:
    for item in items:
        with suppress(InvalidValue):
            yield read_target(item, attribute)


def _as_text(tree: Tree) -> str:
    return describe_value(tree if isinstance(tree, dict | list) else mask_hashes(tree))


def _read_component(attribute: Attribute, tree: Tree, path: KeyPath, reading: Reading) -> Any:
    type_ = reading.types[attribute.component or ""]
    if not attribute.repeatable:
        return _read_one(type_, tree, path, reading)
    if not isinstance(tree, list):
        reading.add_mismatch(
            path,
            f"must be a list (found {_as_text(tree)})",
            "write each component as a list entry that begins with a dash",
        )
        return ()
    found = (_read_one(type_, item, (*path, i), reading) for i, item in enumerate(tree))
    return tuple(component for component in found if component is not None)


def _read_one(type_: Type, tree: Tree, path: KeyPath, reading: Reading) -> Component | None:
    if not isinstance(tree, dict):
        reading.add_mismatch(path, f"must be a mapping (found {_as_text(tree)})", component_advice(type_))
        return None
    warn_unknown(type_, tree, path, reading, allowed=("id", "__component"))
    values = read_attributes(type_, tree, path, reading)
    return Component(type_, (derive_id(reading.seed, *map(str, path)), *values))


def _read_zone(attribute: Attribute, tree: Tree, path: KeyPath, reading: Reading) -> tuple[Component, ...]:
    if not isinstance(tree, list):
        reading.add_mismatch(
            path,
            f"must be a list (found {_as_text(tree)})",
            "write each component as a list entry that begins with a dash",
        )
        return ()
    found = []
    for i, item in enumerate(tree):
        uid = item.get("__component") if isinstance(item, dict) else None
        if uid not in attribute.components:
            likeness = (
                0.9 if uid in reading.types else 0.75
            )  # If a component has this name, it is probably not a typo.
            hint = suggestion(str(uid), attribute.components, likeness) if uid else ""
            takes = ", ".join(attribute.components)
            fix = hint or (f"use one of {takes}" if uid else f"set __component to one of {takes}")
            what = (
                f'the component "{uid}" is not allowed in this dynamic zone'
                if uid
                else "__component is missing"
            )
            reading.add_mismatch((*path, i), what, fix)
            continue
        component = _read_one(reading.types[str(uid)], item, (*path, i), reading)
        if component:
            found.append(component)
    return tuple(found)


def read_document_id(tree: Mapping[str, Tree], default: str, reading: Reading) -> str:
    """Return the file's `documentId`, or `default` if it is missing or invalid."""
    written = tree.get("documentId")
    if is_null(written):
        return default
    if isinstance(written, str) and written and "/" not in written:
        return to_nfc(str(written))
    fix = (
        'remove the "/", or remove documentId'
        if isinstance(written, str)
        else "put the value in quotes, or remove documentId"
    )
    reading.add_mismatch(("documentId",), 'must be a string without "/"', fix)
    return default


def read_file_timestamp(tree: Mapping[str, Tree], name: str, default: str, reading: Reading) -> str:
    """Return the file's timestamp with the key `name`, or `default` if it is missing or invalid."""
    written = tree.get(name)
    if is_null(written):
        return default
    try:
        return read_timestamp(str(written))
    except ValueError:
        fix = timestamp_advice(str(written))
        reading.add_mismatch((name,), f"must be a timestamp (found {_as_text(written)})", fix, warning=True)
        return default


def unknown_key_advice(key: str, type_: Type, hidden: Collection[str] = ()) -> str:
    known = [name for name in type_.attributes if name not in hidden]
    # The content type of media files has no schema file.
    add = f"add the attribute to {type_.path}, or " if type_.path else ""
    return suggestion(key, known) or f"{add}remove the key"


def warn_unknown(
    type_: Type, tree: Mapping[str, Tree], path: KeyPath, reading: Reading, allowed: tuple[str, ...]
) -> None:
    for key in tree:
        if key not in type_.attributes and key not in allowed:
            fix = unknown_key_advice(key, type_)
            what = f'{type_.uid} has no attribute "{key}"'
            reading.add_mismatch((*path, key), what, fix, warning=True, rule="unknown-key")
