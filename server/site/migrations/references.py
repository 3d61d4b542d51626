"""References to an attribute in the schemas and in site.yaml."""

import re
from collections.abc import Iterator
from typing import Any

from server.config.model import FILE
from server.config.public_site import NO_FIELD
from server.formats.edits import REMOVE
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree, is_null
from server.schema.model import Schema, Type
from server.site.migrations.draft import Draft
from server.site.migrations.edits import Edits
from server.site.migrations.query_names import UP, NewNames, QueryNames
from server.storage.read import parse

_INVERSE = ("inversedBy", "mappedBy", "morphBy")


def rename_references(draft: Draft, schema: Schema, type_: Type, old: str, new: str) -> dict[str, Edits]:
    found = references_in_schemas(schema, type_, old, new)
    found[FILE] = references_in_settings(draft, schema, type_, NewNames(type_.uid, old, ((new,),)))
    return {path: edits for path, edits in found.items() if edits}


def references_in_schemas(schema: Schema, type_: Type, old: str, new: str) -> dict[str, Edits]:
    """Return the edits that rename all references to an attribute in the schemas, by file."""
    found = {type_.path: _own_schema_edits(type_, old, new)}
    for other in schema.types.values():
        if other.path:
            edits = found.setdefault(other.path, Edits())
            for name, data in _attributes(other):
                for key in _INVERSE:
                    if data.get("target") == type_.uid and data.get(key) == old:
                        edits.values["attributes", name, key] = new
    return {path: edits for path, edits in found.items() if edits}


def _attributes(type_: Type) -> Iterator[tuple[str, Any]]:
    for name, data in type_.raw.get("attributes", {}).items():
        if isinstance(data, dict):
            yield name, data


def _own_schema_edits(type_: Type, old: str, new: str) -> Edits:
    edits = Edits()
    for name, data in _attributes(type_):
        if data.get("targetField") == old:
            edits.values["attributes", name, "targetField"] = new
    options = type_.raw.get("options") or {}
    for key in ("body", "otherKeys"):
        if options.get(key) == old:
            edits.values["options", key] = new
    pattern = options.get("fileName")
    if isinstance(pattern, str) and (made := _placeholder(pattern, old, new)) != pattern:
        edits.values["options", "fileName"] = made
    if old in (options.get("draftWhen") or {}):
        edits.renames["options", "draftWhen", old] = new
    return edits


def _placeholder(text: str, old: str, new: str) -> str:
    return re.sub(rf"\{{{re.escape(old)}(?=[.}}])", lambda _: "{" + new, text)


# --- site.yaml ------------------------------------------------------------------------------------


def settings_tree(draft: Draft) -> dict[str, Tree]:
    return parse(FILE, draft.text(FILE), None) if draft.exists(FILE) else {}


def value_at(tree: Tree, *keys: str) -> Tree:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def entries(tree: Tree, *keys: str) -> list[tuple[str, Tree]]:
    found = value_at(tree, *keys)
    return list(found.items()) if isinstance(found, dict) else []


def references_in_settings(draft: Draft, schema: Schema, type_: Type, new: NewNames) -> Edits:
    """Return the edits to site.yaml for an attribute that is renamed, moved or removed."""
    tree, edits = settings_tree(draft), Edits()
    names = QueryNames(schema, new)
    for section, read in (
        (("api", "populate"), names.populate),
        (("export", "types"), names.parameters),
        (("preview",), lambda t, value: _preview_edits(names, t, value, type_)),
        (("urls",), lambda t, value: _url_edits(new, t, value)),
    ):
        for singular, value in entries(tree, *section):
            if found := schema.subjects.get(singular):
                edits.add(read(found, value), (*section, singular))
    for name, request in entries(tree, "export", "queries"):
        if isinstance(request, str) and (made := names.request(request)) != request:
            if new.new_name is None:
                edits.refused["export", "queries", name] = "a request can't be changed automatically"
            else:
                _set(edits, ("export", "queries", name), request, made)
    for name, feed in entries(tree, "feeds"):
        edits.add(_feed_edits(names, schema, feed), ("feeds", name))
    if type_.kind != "component":
        weights = dict(entries(tree, "search", "weights"))
        edits.add(_weight_edits(weights, schema, type_, new), ("search", "weights"))
    return edits


def _set(edits: Edits, key_path: KeyPath, text: str, new: str) -> None:
    if new != text:
        edits.values[key_path] = Plain(new) if type(text) is Plain else new


def _set_placeholder(edits: Edits, key_path: KeyPath, text: str, new: NewNames) -> None:
    if (made := _placeholder(text, new.old, new.new_name or f"{new.old}-")) != text:
        if new.new_name is None:
            edits.refused[key_path] = "a URL can contain only the type's own attributes"
        else:
            _set(edits, key_path, text, made)


def _url_edits(new: NewNames, linked_type: Type, value: Tree) -> Edits:
    edits = Edits()
    patterns = [((key,), text) for key, text in value.items()] if isinstance(value, dict) else [((), value)]
    for at_pattern, text in patterns:
        if linked_type.uid == new.uid and isinstance(text, str):
            _set_placeholder(edits, at_pattern, text, new)
    return edits


def _preview_edits(names: QueryNames, previewed_type: Type, value: Tree, type_: Type) -> Edits:
    edits = Edits()
    url, at_url = (value, ()) if isinstance(value, str) else (value_at(value, "url"), ("url",))
    if previewed_type is type_ and isinstance(url, str):
        _set_placeholder(edits, at_url, url, names.new)
    unmarked = value_at(value, "unmarked")
    if not is_null(unmarked):
        edits.add(names.paths(previewed_type, unmarked), ("unmarked",))
    return edits


def _feed_edits(names: QueryNames, schema: Schema, feed: Tree) -> Edits:
    named = value_at(feed, "type")
    subjects = [named] if isinstance(named, str) else named if isinstance(named, list) else []
    types = [schema.subjects[str(name)] for name in subjects if str(name) in schema.subjects]
    found = [_feed_edits_for_type(names, type_, feed) for type_ in types]
    edits = next((each for each in found if each), Edits())
    if all(each == edits for each in found):
        return edits
    what = "the feed contains types that keep this name"
    return Edits(refused=dict.fromkeys((*edits.renames, *edits.values, *edits.refused), what))


def _feed_edits_for_type(names: QueryNames, type_: Type, feed: Tree) -> Edits:
    edits = names.parameters(type_, feed)
    for key, path in entries(feed, "item"):
        if isinstance(path, str) and not is_null(path) and path != NO_FIELD:
            edits.add(names.paths(type_, path), ("item", key))
            if "," in str(edits.values.get(("item", key), "")):
                edits.values.pop(("item", key))
                edits.refused["item", key] = "only one attribute is possible here"
    return edits


def _weight_edits(weights: dict[str, Tree], schema: Schema, type_: Type, new: NewNames) -> Edits:
    old = new.old
    if new.new_name is not None:
        return _renamed_weight(weights, schema, type_, old, new.new_name)
    edits, own = Edits(), f"{type_.singular}.{old}"
    shared = any(old in t.attributes for t in schema.content_types if t is not type_)
    keys = [key for key in (own, old) if key in weights]
    if not keys:
        return edits
    weight = weights[keys[0]]
    if own in weights or not shared:
        edits.values[keys[0],] = REMOVE
    inner = schema.types.get(type_.attributes[old].component or "")
    paths = [(name,) for name in inner.attributes] if inner and new.paths == ((),) else new.paths
    for name in dict.fromkeys(path[0] for path in paths if path and path[0] != UP):
        key = f"{type_.singular}.{name}"
        held = type_.attributes.get(name)
        if held is not None and held.target:  # The attribute moves along this relation.
            key = f"{schema.types[held.target].singular}.{old}"
        if str(weights.get(key, weight)) != str(weight):
            edits.refused[keys[0],] = f'"{key}" has another weight'
        elif key not in weights:
            edits.values[key,] = weight
    return edits


def _renamed_weight(weights: dict[str, Tree], schema: Schema, type_: Type, old: str, new: str) -> Edits:
    edits = Edits()
    own, own_new = f"{type_.singular}.{old}", f"{type_.singular}.{new}"
    shared = any({old, new} & t.attributes.keys() for t in schema.content_types if t is not type_)
    if own in weights and new in weights and str(weights[own]) == str(weights[new]):
        edits.values[own,] = REMOVE  # The weight that applies to all types has the same effect.
    elif own in weights:
        edits.renames[own,] = own_new
    elif old in weights and (shared or new in weights):
        edits.values[own_new,] = weights[old]
    elif old in weights:
        edits.renames[old,] = new
    return edits
