"""Generator of TypeScript types for the content types."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.model import Settings
from server.query.operators import OPERATORS, Operator
from server.query.queryable_attributes import targets_of
from server.schema.model import (
    BUILT_IN,
    ROLE,
    STANDARD_FIELDS,
    UPLOAD,
    USER,
    Attribute,
    Schema,
    Type,
    key_of,
    type_names,
)
from server.schema.sentences import describe_attribute, describe_type
from server.storage.images.variants import PLACEHOLDER_FIELDS

# --- literals -------------------------------------------------------------------------------------

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def string_literal(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def literal_union(values: Iterable[str]) -> str:
    return " | ".join(string_literal(value) for value in values) or "never"


def property_name(name: str) -> str:
    return name if _IDENTIFIER.fullmatch(name) else string_literal(name)


def doc_comment(sentences: Iterable[str], indent: str = "") -> str:
    line = " ".join(" ".join(sentence.split()) for sentence in sentences if sentence.strip())
    closed = line.replace("*/", "*\\/")
    return f"{indent}/** {closed} */\n" if line else ""


# --- shapes ---------------------------------------------------------------------------------------

# by attribute type
RESPONSE_TYPES: Mapping[str, str] = {
    "string": "string",
    "text": "string",
    "richtext": "string",
    "blocks": "RichBlock[]",
    "email": "string",
    "uid": "string",
    "date": "string",
    "time": "string",
    "datetime": "string",
    "timestamp": "string",
    "integer": "number",
    "biginteger": "string",
    "float": "number",
    "decimal": "number",
    "boolean": "boolean",
    "array": "Json[]",
    "json": "Json",
}
BODY_TYPES: Mapping[str, str] = {
    **RESPONSE_TYPES,
    "password": "string",
    "datetime": "string | Date",
    "timestamp": "string | Date",
    "biginteger": "number | string",
    "decimal": "number | string",
}
# attributes that are never null, by built-in type
_ALWAYS: Mapping[str, frozenset[str]] = {
    UPLOAD: frozenset({"name", "hash", "ext", "mime", "size", "url", "provider"}),
    USER: frozenset({"username", "email", "provider", "confirmed", "blocked"}),
    ROLE: frozenset({"name", "description", "type"}),
}


@dataclass(frozen=True, slots=True)
class TypeDeclarations:
    """Generator of TypeScript types. `names` maps the uids of types to their names in TypeScript."""

    schema: Schema
    names: Mapping[str, str]
    has_placeholders: bool = False  # whether media files have placeholders

    def declarations_for(self, type_: Type) -> str:
        name = self.names[type_.uid]
        described = doc_comment(describe_type(type_))
        base = "{\n  id: number;\n" if type_.kind == "component" else "Version & {\n"
        parts = [
            f"{described}export type {name} = {base}{''.join(self._response_members(type_))}}};\n",
            f"export type {name}Links = {{\n{''.join(self._links(type_))}}};\n",
        ]
        if type_.uid not in BUILT_IN:
            parts.append(f"export type {name}Input = {{\n{''.join(self._input(type_))}}};\n")
        return "\n".join(parts).replace("{\n}", "{}")

    def types_entry(self, type_: Type) -> str:
        name = self.names[type_.uid]
        written = f"{name}Input" if type_.uid not in BUILT_IN else "never"
        shape = f"uid: {string_literal(type_.uid)}; fields: {name}; links: {name}Links; input: {written}"
        return f"  {property_name(key_of(type_))}: {{ {shape} }};\n"

    def _response_members(self, type_: Type) -> Iterator[str]:
        for name in type_.default_fields:
            attribute = type_.columns[name]
            if type_.kind != "component" and name in STANDARD_FIELDS:
                continue
            value = (
                literal_union(attribute.enum)
                if attribute.type == "enumeration"
                else RESPONSE_TYPES[attribute.type]
            )
            if type_.uid == UPLOAD and name == "formats":
                value = "ImageFormats"
            sure = is_never_null(type_, attribute)
            yield _member(attribute, value if sure or value == "Json" else f"{value} | null")
        if type_.uid == UPLOAD and self.has_placeholders:
            yield from (f"  {name}: string | null;\n" for name in PLACEHOLDER_FIELDS)

    def _links(self, type_: Type) -> Iterator[str]:
        for attribute in type_.attributes.values():
            if attribute.populatable and (link := self._populated_type(attribute)):
                yield _member(attribute, link)
        if type_.localized:
            yield doc_comment(["The other locales of the document."], "  ")
            yield f"  localizations: Many<{string_literal(key_of(type_))}>;\n"

    def _populated_type(self, attribute: Attribute) -> str:
        """Return the type of a populated attribute, or "" if its target type is unknown."""
        if attribute.type == "dynamiczone":
            return f"Zone<{self._keys(attribute.components)}>"
        if attribute.polymorphic:
            every = literal_union(key_of(t) for t in targets_of(self.schema, attribute))
            return f"{'ManyOf' if attribute.to_many else 'OneOf'}<{every}>"
        uid = {"media": UPLOAD, "component": attribute.component}.get(attribute.type, attribute.target)
        if uid not in self.schema.types:
            return ""
        sure = attribute.type == "component" and attribute.required
        kind = "Many" if attribute.to_many else "Always" if sure else "One"
        return f"{kind}<{self._keys((str(uid),))}>"

    def _keys(self, uids: tuple[str, ...]) -> str:
        return literal_union(key_of(self.schema.types[uid]) for uid in uids)

    def _input(self, type_: Type) -> Iterator[str]:
        for attribute in type_.attributes.values():
            value = self._input_type(attribute)
            if not value:
                continue
            needed = attribute.required and not attribute.derived
            optional = "" if needed and (attribute.default is None or not attribute.scalar) else "?"
            nullable = needed or value == "Json" or value.startswith("RelationInput")
            yield _member(attribute, value if nullable else f"{value} | null", optional)

    def _input_type(self, attribute: Attribute) -> str:
        match attribute.type:
            case "enumeration":
                return literal_union(attribute.enum)
            case "relation" if attribute.polymorphic:
                return "RelationInput<TypedReference>"
            case "relation":
                return "RelationInput" if attribute.target in self.schema.types else ""
            case "media":
                return "MediaInput | MediaInput[]" if attribute.multiple else "MediaInput"
            case "component":
                name = f"{self.names[str(attribute.component)]}Input"
                return f"{name}[]" if attribute.repeatable else name
            case "dynamiczone":
                return f"({' | '.join(map(self._zone_entry, attribute.components)) or 'never'})[]"
        return BODY_TYPES[attribute.type]

    def _zone_entry(self, uid: str) -> str:
        return f"({{ __component: {string_literal(uid)} }} & {self.names[uid]}Input)"


def is_never_null(type_: Type, attribute: Attribute) -> bool:
    return attribute.required or attribute.name in _ALWAYS.get(type_.uid, ())


def _member(attribute: Attribute, value: str, optional: str = "") -> str:
    described = doc_comment(describe_attribute(attribute), "  ")
    return f"{described}  {property_name(attribute.name)}{optional}: {value};\n"


# --- module ---------------------------------------------------------------------------------------

PRELUDE = (Path(__file__).parent / "typescript_prelude.ts").read_text(encoding="utf-8")
_DECLARED = re.compile(r"^(?:export )?type (\w+)", re.MULTILINE)
_GENERATED = ("Locale", "DefaultLocale", "Types", "Collections", "Singles", "Operators")
# names that the generated module uses
_GLOBALS = frozenset(
    {"Array", "Date", "Exclude", "Extract", "NonNullable", "Omit", "Partial", "Pick", "Promise"}
    | {"Any", "Boolean", "Never", "Number", "Object", "String", "Symbol", "Undefined", "Unknown"}
)
_HEAD = "// Made by `bifolio types` from this site's content types. Do not edit: run it again.\n"
# types of operands, where `V` is the attribute's type
_TAKES: Mapping[str, str] = {
    "value": "V | null",
    "list": "readonly V[]",
    "pair": "readonly [V, V]",
    "text": "string",
    "flag": "boolean",
}


def write_module(schema: Schema, settings: Settings) -> str:
    return f"{_HEAD}\n{write_typescript(schema, settings)}"


def write_typescript(schema: Schema, settings: Settings) -> str:
    """Return the TypeScript declarations of all types."""
    shapes = TypeDeclarations(schema, typescript_names(schema), has_placeholders=settings.media.placeholders)
    types = type_order(schema)
    parts = [
        _locales(settings),
        *(shapes.declarations_for(type_) for type_ in types),
        "/** Every type by name. */\n" + _table("Types", (shapes.types_entry(type_) for type_ in types)),
        _endpoints(schema.content_types),
        _operators(OPERATORS.values()),
        _with_named_formats(settings),
    ]
    return "\n".join(parts)


def named_formats_of(settings: Settings) -> tuple[str, ...]:
    return tuple(settings.media.formats) if settings.media.transform.enabled else ()


def _with_named_formats(settings: Settings) -> str:
    names = named_formats_of(settings)
    if not names:
        return PRELUDE
    end = "]?: ImageFormat };\n"
    assert PRELUDE.count(end) == 1
    unknown = "size: null; sizeInBytes: null"
    added = f'Omit<ImageFormat, "size" | "sizeInBytes"> & {{ {unknown} }}'
    return PRELUDE.replace(end, f"{end[:-2]} & {{ [name in {literal_union(names)}]?: {added} }};\n")


def typescript_names(schema: Schema) -> Mapping[str, str]:
    return type_names(schema, [*_DECLARED.findall(PRELUDE), *_GENERATED, *_GLOBALS], ("Links", "Input"))


def type_order(schema: Schema) -> list[Type]:
    """Return all types in the order in which the generated file declares them."""
    components = sorted((t for t in schema.types.values() if t.kind == "component"), key=lambda t: t.uid)
    return [*schema.content_types, *components, *(schema.types[uid] for uid in BUILT_IN)]


def _locales(settings: Settings) -> str:
    return (
        "/** The locales of the site. */\n"
        f"export type Locale = {literal_union(settings.locales.available)};\n"
        f"export type DefaultLocale = {string_literal(settings.locales.default)};\n"
    )


def _table(name: str, lines: Iterable[str]) -> str:
    return f"export type {name} = {{\n{''.join(lines)}}};\n".replace("{\n}", "{}")


def _endpoints(types: Iterable[Type]) -> str:
    types = tuple(types)
    collections = (
        f"  {property_name(t.plural)}: {string_literal(key_of(t))};\n"
        for t in types
        if t.kind == "collectionType"
    )
    singles = (
        f"  {property_name(t.singular)}: {string_literal(key_of(t))};\n"
        for t in types
        if t.kind == "singleType"
    )
    return (
        "/** The type behind `/api/NAME`, of collections. */\n"
        + _table("Collections", collections)
        + "/** The type behind `/api/NAME`, of single types. */\n"
        + _table("Singles", singles)
    )


def _operators(operators: Iterable[Operator]) -> str:
    lines = (
        f"  /** The value {o.description}. */\n  {o.name}?: {_TAKES[o.operand_kind]};\n" for o in operators
    )
    return "/** The filter operators, for a value of type V. */\n" + _table("Operators<V>", lines)
