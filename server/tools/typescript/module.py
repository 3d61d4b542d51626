"""The whole TypeScript module of a site. The same schema always makes the same bytes."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from server.config.model import Settings
from server.query.operators import OPERATORS, Operator
from server.schema.model import BUILT_IN, Schema, Type
from server.schema.naming import key_of, type_names
from server.tools.typescript.literals import prop, text, union
from server.tools.typescript.shapes import Shapes

PRELUDE = (Path(__file__).parent / "prelude.ts").read_text(encoding="utf-8")
_DECLARED = re.compile(r"^(?:export )?type (\w+)", re.MULTILINE)
_GENERATED = ("Locale", "DefaultLocale", "Types", "Collections", "Singles", "Operators")
# Names of the language that the generated text needs, and that no type may take.
_GLOBALS = frozenset(
    {"Array", "Date", "Exclude", "Extract", "NonNullable", "Omit", "Partial", "Pick", "Promise"}
    | {"Any", "Boolean", "Never", "Number", "Object", "String", "Symbol", "Undefined", "Unknown"}
)
_HEAD = "// Made by `quire types` from this site's content types. Do not edit: run it again.\n"
# What operators take, as types; V is the type of the attribute's values.
_TAKES: Mapping[str, str] = {
    "value": "V | null",
    "list": "readonly V[]",
    "pair": "readonly [V, V]",
    "text": "string",
    "flag": "boolean",
}


def write_module(schema: Schema, settings: Settings) -> str:
    """The text of the module."""
    names = type_names(schema, [*_DECLARED.findall(PRELUDE), *_GENERATED, *_GLOBALS], ("Links", "Input"))
    shapes = Shapes(schema, names)
    components = sorted((t for t in schema.types.values() if t.kind == "component"), key=lambda t: t.uid)
    types = [*schema.content_types, *components, *(schema.types[uid] for uid in BUILT_IN)]
    parts = [
        _HEAD,
        _locales(settings),
        *(shapes.of(type_) for type_ in types),
        "/** Every type by name. */\n" + _table("Types", (shapes.entry(type_) for type_ in types)),
        _endpoints(schema.content_types),
        _operators(OPERATORS.values()),
        PRELUDE,
    ]
    return "\n".join(parts)


def _locales(settings: Settings) -> str:
    return (
        "/** The locales of the site. */\n"
        f"export type Locale = {union(settings.locales)};\n"
        f"export type DefaultLocale = {text(settings.default_locale)};\n"
    )


def _table(name: str, lines: Iterable[str]) -> str:
    return f"export type {name} = {{\n{''.join(lines)}}};\n".replace("{\n}", "{}")


def _endpoints(types: Iterable[Type]) -> str:
    """The tables of API ids: of collections by plural, of single types by singular."""
    types = tuple(types)
    collections = (f"  {prop(t.plural)}: {text(key_of(t))};\n" for t in types if t.kind == "collectionType")
    singles = (f"  {prop(t.singular)}: {text(key_of(t))};\n" for t in types if t.kind == "singleType")
    return (
        "/** The type behind `/api/NAME`, of collections. */\n"
        + _table("Collections", collections)
        + "/** The type behind `/api/NAME`, of single types. */\n"
        + _table("Singles", singles)
    )


def _operators(operators: Iterable[Operator]) -> str:
    lines = (f"  /** The value {o.sentence}. */\n  {o.name}?: {_TAKES[o.takes]};\n" for o in operators)
    return "/** The filter operators, for a value of type V. */\n" + _table("Operators<V>", lines)
