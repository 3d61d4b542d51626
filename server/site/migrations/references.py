"""References to an attribute in schemas and in site.yaml."""

import re
from collections.abc import Iterator
from typing import Any

from server.config.model import FILE
from server.formats.edits import REMOVE
from server.formats.text_positions import KeyPath
from server.formats.tree import Plain, Tree, is_null
from server.schema.model import Schema, Type
from server.site.migrations.draft import Draft
from server.site.migrations.edits import Edits
from server.site.migrations.query_names import QueryNames
from server.storage.read import parse

_INVERSE = ("inversedBy", "mappedBy", "morphBy")


def references(draft: Draft, schema: Schema, type_: Type, old: str, new: str) -> dict[str, Edits]:
    """Return the edits that rename an attribute wherever schemas and site.yaml refer to it, by path."""
    found = {type_.path: _in_own_schema(type_, old, new)}
    for other in schema.types.values():
        if other.path:
            edits = found.setdefault(other.path, Edits())
            for name, data in _attributes(other):
                for key in _INVERSE:
                    if data.get("target") == type_.uid and data.get(key) == old:
                        edits.values["attributes", name, key] = new
    found[FILE] = _in_settings(draft, schema, type_, old, new)
    return {path: edits for path, edits in found.items() if edits}


def _attributes(type_: Type) -> Iterator[tuple[str, Any]]:
    for name, data in type_.raw.get("attributes", {}).items():
        if isinstance(data, dict):
            yield name, data


def _in_own_schema(type_: Type, old: str, new: str) -> Edits:
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


def at(tree: Tree, *keys: str) -> Tree:
    for key in keys:
        tree = tree.get(key) if isinstance(tree, dict) else None
    return tree


def entries(tree: Tree, *keys: str) -> list[tuple[str, Tree]]:
    found = at(tree, *keys)
    return list(found.items()) if isinstance(found, dict) else []


def _in_settings(draft: Draft, schema: Schema, type_: Type, old: str, new: str) -> Edits:
    tree, edits = settings_tree(draft), Edits()

    def new_name(uid: str, name: str) -> str:
        return new if (uid, name) == (type_.uid, old) else name

    names = QueryNames(schema, new_name)
    for section, read in (
        (("api", "populate"), names.populate),
        (("export", "types"), names.parameters),
        (("preview",), lambda t, value: _in_preview(names, t, value, type_, old, new)),
    ):
        for singular, value in entries(tree, *section):
            if found := schema.subjects.get(singular):
                edits.add(read(found, value), (*section, singular))
    for name, request in entries(tree, "export", "queries"):
        if isinstance(request, str):
            _set(edits, ("export", "queries", name), request, names.request(request))
    if type_.kind != "component":
        edits.add(_in_weights(dict(entries(tree, "search", "weights")), schema, type_, old, new),
                  ("search", "weights"))  # fmt: skip
    return edits


def _set(edits: Edits, at: KeyPath, text: str, new: str) -> None:
    if new != text:
        edits.values[at] = Plain(new) if type(text) is Plain else new


def _in_preview(names: QueryNames, of: Type, value: Tree, type_: Type, old: str, new: str) -> Edits:
    edits = Edits()
    url, at_url = (value, ()) if isinstance(value, str) else (at(value, "url"), ("url",))
    if of is type_ and isinstance(url, str):
        _set(edits, at_url, url, _placeholder(url, old, new))
    unmarked = at(value, "unmarked")
    if not is_null(unmarked):
        edits.add(names.fields(of, unmarked), ("unmarked",))
    return edits


def _in_weights(weights: dict[str, Tree], schema: Schema, type_: Type, old: str, new: str) -> Edits:
    """Return the edits to `search.weights`, whose keys are `attribute` or `type.attribute`."""
    edits = Edits()
    own, own_new = f"{type_.singular}.{old}", f"{type_.singular}.{new}"
    shared = any({old, new} & t.attributes.keys() for t in schema.content_types if t is not type_)
    if own in weights and new in weights and str(weights[own]) == str(weights[new]):
        edits.values[own,] = REMOVE  # the weight for all types has the same effect
    elif own in weights:
        edits.renames[own,] = own_new
    elif old in weights and (shared or new in weights):
        edits.values[own_new,] = weights[old]
    elif old in weights:
        edits.renames[old,] = new
    return edits
