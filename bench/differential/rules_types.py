"""Content types with every option on every attribute type."""

import json
from pathlib import Path
from typing import Any

Schema = dict[str, Any]
_LENGTHS = {"minLength": 2, "maxLength": 8}
_LIMITS: Schema = {
    "string": {"type": "string", **_LENGTHS},
    "text": {"type": "text", **_LENGTHS},
    "rich": {"type": "richtext", **_LENGTHS},
    "word": {"type": "string", "regex": "^[a-z]+$"},
    "words": {"type": "text", "regex": "[a-z] [a-z]"},
    "secret": {"type": "password", "minLength": 4, "maxLength": 12},
    "mail": {"type": "email", "minLength": 8, "maxLength": 40},
    "slug": {"type": "uid", "minLength": 2, "maxLength": 20},
    "count": {"type": "integer", "min": -2, "max": 60},
    "big": {"type": "biginteger", "min": "-5", "max": "9007199254740991"},
    "ratio": {"type": "float", "min": 0.5, "max": 9.5},
    "price": {"type": "decimal", "min": -0.25, "max": 99.99},
}
_PRESETS: Schema = {
    "name": {"type": "string", "default": "preset"},
    "notes": {"type": "text", "default": ""},
    "kind": {"type": "enumeration", "enum": ["one", "two words", "Three"], "default": "two words"},
    "level": {"type": "integer", "default": 0},
    "share": {"type": "float", "default": 1.5},
    "price": {"type": "decimal", "default": 0.1},
    "big": {"type": "biginteger", "default": "12"},
    "on": {"type": "boolean", "default": False},
    "day": {"type": "date", "default": "2024-02-29"},
    "hour": {"type": "time", "default": "08:30:00"},
    "moment": {"type": "datetime", "default": "2024-02-29T08:30:00.000Z"},
    "data": {"type": "json", "default": {"a": [1, None]}},
    "must": {"type": "integer", "required": True, "default": 7},
}
_UNIQUE = (
    "string", "text", "richtext", "email", "integer", "biginteger", "float", "decimal", "date", "time",
    "datetime",
)  # fmt: skip


def write_rules_types(folder: Path) -> None:
    """Write the content types and the component."""
    part = {
        "label": {"type": "string", "required": True, "minLength": 2, "maxLength": 6},
        "size": {"type": "decimal", "min": 0.5, "max": 2.5, "default": 1.5},
        "code": {"type": "string", "regex": "^[A-Z]{2}$"},
        "key": {"type": "string", "unique": True},
        "body": {"type": "blocks"},
    }
    limits = {
        **_LIMITS,
        "part": {"type": "component", "component": "rules.part", "repeatable": False},
        "parts": {"type": "component", "component": "rules.part", "repeatable": True, "min": 1, "max": 2},
        "zone": {"type": "dynamiczone", "components": ["rules.part"], "min": 1, "max": 3},
        "body": {"type": "blocks"},
    }
    unique = {f"{kind}s": {"type": kind, "unique": True} for kind in _UNIQUE}
    _write(folder, "limit", limits)
    _write(folder, "preset", _PRESETS, drafts=True)
    _write(folder, "stamp", {**unique, "name": {"type": "string"}}, drafts=True, localized=True)
    _write(folder, "road", _roads(), drafts=True)
    _write(folder, "town", _towns())
    _write(folder, "pin", _pins())
    _save(
        folder / "components" / "rules" / "part.json", {"info": {"displayName": "Part"}, "attributes": part}
    )


def _roads() -> Schema:
    """Return a content type with multiple relations to towns, and one to itself."""
    return {
        "name": {"type": "string"},
        "start": _relation("manyToOne", "town", inversedBy="starting"),
        "end": _relation("manyToOne", "town", inversedBy="ending"),
        "through": _relation("manyToMany", "town", inversedBy="roads"),
        "near": _relation("oneToMany", "town"),
        "before": _relation("oneToOne", "road", inversedBy="after"),
        "after": _relation("oneToOne", "road", mappedBy="before"),
    }


def _towns() -> Schema:
    return {
        "name": {"type": "string"},
        "starting": _relation("oneToMany", "road", mappedBy="start"),
        "ending": _relation("oneToMany", "road", mappedBy="end"),
        "roads": _relation("manyToMany", "road", mappedBy="through"),
        "pins": {**_relation("morphMany", "pin"), "morphBy": "subjects"},
    }


def _pins() -> Schema:
    return {
        "name": {"type": "string"},
        "subject": {"type": "relation", "relation": "morphToOne"},
        "subjects": {"type": "relation", "relation": "morphToMany"},
    }


def _relation(kind: str, noun: str, **more: str) -> Schema:
    return {"type": "relation", "relation": kind, "target": f"api::{noun}.{noun}", **more}


def _write(
    folder: Path, noun: str, attributes: Schema, *, drafts: bool = False, localized: bool = False
) -> None:
    if localized:
        on = {"i18n": {"localized": True}}
        attributes = {name: {**found, "pluginOptions": on} for name, found in attributes.items()}
    schema = {
        "kind": "collectionType",
        "info": {"singularName": noun, "pluralName": f"{noun}s", "displayName": noun.title()},
        "options": {"draftAndPublish": drafts},
        "pluginOptions": {"i18n": {"localized": localized}} if localized else {},
        "attributes": attributes,
    }
    _save(folder / f"{noun}.json", schema)


def _save(path: Path, schema: Schema) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(schema, indent=2) + "\n")
