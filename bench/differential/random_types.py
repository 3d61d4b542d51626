"""Random content types and components, which are generated from a seed."""

import json
import random
from pathlib import Path
from typing import Any

from bench.differential.values import Chance

_NOUNS = (
    "atlas", "basin", "cargo", "delta", "estuary", "fjord", "gale", "haven", "inlet", "jetty", "knot",
)  # fmt: skip
_NAMES = (
    "title", "subTitle", "rank", "price_eur", "openedOn", "startsAt", "mood", "isNew", "notes", "summary",
    "mail", "level", "weight", "code", "details", "hours", "extra", "shade", "Kind", "total",
)  # fmt: skip
_KINDS = (
    "string", "string", "text", "richtext", "enumeration", "email", "date", "time", "datetime", "integer",
    "integer", "biginteger", "float", "decimal", "boolean", "json", "blocks", "password",
)  # fmt: skip
_LINKS = (
    ("oneToOne", "oneToOne"), ("manyToOne", "oneToMany"), ("manyToMany", "manyToMany"), ("oneToOne", None),
    ("manyToOne", None), ("oneToMany", None), ("manyToMany", None),
)  # fmt: skip
_COLLECTIONS, _SINGLES, _COMPONENTS, _RELATIONS = 5, 2, 5, 9
Schema = dict[str, Any]


def write_random_types(folder: Path, seed: str) -> None:
    """Generate content types and components from a seed, in `folder`/content-types."""
    chance = random.Random(f"types/{seed}")
    nouns = chance.sample(_NOUNS, _COLLECTIONS + _SINGLES)
    collections = nouns[:_COLLECTIONS]
    components = _components(chance, collections)
    types = {noun: _type(chance, noun, noun in collections, list(components)) for noun in nouns}
    _relate(chance, types, collections)
    for noun, schema in types.items():
        _write(folder / f"{noun}.json", schema)
    for name, attributes in components.items():
        category, _, short = name.partition(".")
        schema = {"info": {"displayName": short}, "options": {}, "attributes": attributes}
        _write(folder / "components" / category / f"{short}.json", schema)


def _components(chance: Chance, collections: list[str]) -> dict[str, Schema]:
    # A component can contain the components before it.
    made: dict[str, Schema] = {}
    for i in range(_COMPONENTS):
        attributes = _scalars(chance, chance.randint(1, 4), plain=True)
        if made and chance.random() < 0.6:
            attributes["part"] = _component(chance, list(made))
        if chance.random() < 0.5:
            kind = chance.choice(("oneToOne", "oneToMany"))
            attributes["link"] = _relation(kind, chance.choice(collections))
        if chance.random() < 0.4:
            attributes["picture"] = {"type": "media", "multiple": chance.random() < 0.3}
        made[f"{chance.choice(('shared', 'page-parts'))}.part-{i}"] = attributes
    return made


def _type(chance: Chance, noun: str, collection: bool, components: list[str]) -> Schema:
    localized = chance.random() < 0.45
    attributes = {"name": {"type": "string", "required": chance.random() < 0.5}}
    attributes |= _scalars(chance, chance.randint(3, 8))
    if collection and chance.random() < 0.6:
        attributes["slug"] = {"type": "uid", "targetField": "name"}
    if chance.random() < 0.6:
        attributes["picture"] = {"type": "media", "multiple": False}
    if chance.random() < 0.4:
        attributes["pictures"] = {"type": "media", "multiple": True, "allowedTypes": ["images"]}
    for name in chance.sample(("part", "parts"), chance.randint(0, 2)):
        attributes[name] = _component(chance, components)
    if chance.random() < 0.6:
        few = chance.sample(components, chance.randint(2, 4))
        attributes["zone"] = {"type": "dynamiczone", "components": few, **_bounds(chance)}
    if localized:
        for attribute in attributes.values():
            attribute["pluginOptions"] = {"i18n": {"localized": chance.random() < 0.6}}
    return {
        "kind": "collectionType" if collection else "singleType",
        "info": {"singularName": noun, "pluralName": f"{noun}s", "displayName": noun.title()},
        "options": {"draftAndPublish": chance.random() < 0.6},
        "pluginOptions": {"i18n": {"localized": localized}} if localized else {},
        "attributes": attributes,
    }


def _scalars(chance: Chance, many: int, *, plain: bool = False) -> Schema:
    return {name: _scalar(chance, plain=plain) for name in chance.sample(_NAMES, many)}


def _scalar(chance: Chance, *, plain: bool) -> Schema:
    kind = chance.choice(_KINDS)
    made: Schema = {"type": kind}
    if kind == "enumeration":
        made["enum"] = chance.sample(("red", "green", "dark blue", "Off_White", "x1"), 3)
    if kind in ("string", "text") and chance.random() < 0.3:
        made |= chance.choice(({"maxLength": 40}, {"minLength": 2}, {"minLength": 3, "maxLength": 30}))
    if kind in ("integer", "float", "decimal") and chance.random() < 0.3:
        made |= chance.choice(({"min": 0}, {"max": 500}, {"min": -5, "max": 60}))
    if kind == "string" and chance.random() < 0.1:
        made = {"type": "string", "regex": "^[a-z]+$"}
    if kind in ("string", "integer", "email") and not plain and chance.random() < 0.12:
        made["unique"] = True
    if kind not in ("json", "blocks") and chance.random() < 0.12:
        made["required"] = True
    if chance.random() < 0.06:
        made["private"] = True
    if not made.get("unique") and chance.random() < 0.15:
        made |= _default(chance, made)
    return made


def _default(chance: Chance, attribute: Schema) -> Schema:
    defaults: Schema = {
        "boolean": chance.random() < 0.5,
        "integer": 7,
        "enumeration": attribute.get("enum", [""])[0],
        "text": "as a default",
    }
    kind = attribute["type"]
    return {"default": defaults[kind]} if kind in defaults else {}


def _component(chance: Chance, names: list[str]) -> Schema:
    made: Schema = {
        "type": "component",
        "component": chance.choice(names),
        "repeatable": chance.random() < 0.5,
    }
    return made | (_bounds(chance) if made["repeatable"] else {})


def _bounds(chance: Chance) -> Schema:
    return chance.choice(({}, {}, {"max": 3}, {"min": 1, "max": 4}, {"min": 1}))


def _relate(chance: Chance, types: dict[str, Schema], collections: list[str]) -> None:
    # The relations of single types are not bidirectional.
    for i in range(_RELATIONS):
        kind, back = _LINKS[i % len(_LINKS)]
        source = chance.choice(collections if back else list(types))
        target = chance.choice(collections)
        made = _relation(kind, target)
        if back:
            made["inversedBy"] = f"of{i}"
            types[target]["attributes"][f"of{i}"] = {**_relation(back, source), "mappedBy": f"to{i}"}
        types[source]["attributes"][f"to{i}"] = made


def _relation(kind: str, noun: str) -> Schema:
    return {"type": "relation", "relation": kind, "target": f"api::{noun}.{noun}"}


def _write(path: Path, schema: Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema, indent=2) + "\n")
