"""Generator of zod schemas."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.config.model import Settings
from server.query.queryable_attributes import targets_of
from server.schema.model import STANDARD_FIELDS, UPLOAD, Attribute, Schema, Type, key_of
from server.storage.images.variants import PLACEHOLDER_FIELDS
from server.tools.typescript import (
    doc_comment,
    is_never_null,
    named_formats_of,
    property_name,
    string_literal,
    type_order,
    typescript_names,
    write_typescript,
)

PRELUDE = (Path(__file__).parent / "zod_prelude.ts").read_text(encoding="utf-8")
_HEAD = "// Made by `bifolio types --zod` from this site's content types. Do not edit: run it again.\n"
# by attribute type
RESPONSE_SCHEMAS: Mapping[str, str] = {
    "string": "z.string()",
    "text": "z.string()",
    "richtext": "z.string()",
    "blocks": "z.array(values.block)",
    "email": "z.string()",
    "uid": "z.string()",
    "date": "z.iso.date()",
    "time": "z.iso.time()",
    "datetime": "z.iso.datetime()",
    "timestamp": "z.iso.datetime()",
    "integer": "z.number()",
    "biginteger": "z.string().regex(/^-?[0-9]+$/)",
    "float": "z.number()",
    "decimal": "z.number()",
    "boolean": "z.boolean()",
    "array": "z.array(values.json)",
    "json": "values.json",
}
_SHARED = """\
const values = { json: z.json() as z.ZodType<Json>, block: z.custom<RichBlock>(isObject) };
const imageFormat = z.object({
  name: z.string(),
  hash: z.string(),
  ext: z.string(),
  mime: z.string(),
  path: z.string().nullable(),
  width: z.number(),
  height: z.number(),
  size: z.number(),
  sizeInBytes: z.number(),
  url: z.string(),
});
const imageFormats = z.object({
  thumbnail: imageFormat.optional(),
  small: imageFormat.optional(),
  medium: imageFormat.optional(),
  large: imageFormat.optional(),
}) as unknown as z.ZodType<ImageFormats>;
"""


@dataclass(frozen=True, slots=True)
class _Writer:
    schema: Schema
    names: Mapping[str, str]
    has_placeholders: bool

    def object_schema(self, type_: Type) -> str:
        name = self.names[type_.uid]
        members = "".join(self._members(type_))
        first = "  id: z.int(),\n" if type_.kind == "component" else "  ...version,\n"
        about = doc_comment([f"The schema of `{name}`."])
        return f"{about}export const {name} = z.object({{\n{first}{members}}}) satisfies z.ZodType<{name}>;\n"

    def _members(self, type_: Type) -> Iterator[str]:
        for name in type_.default_fields:
            attribute = type_.columns[name]
            if type_.kind != "component" and name in STANDARD_FIELDS:
                continue
            if attribute.type == "enumeration":
                value = enum_schema(attribute.enum)
            elif type_.uid == UPLOAD and name == "formats":
                value = "imageFormats"
            else:
                value = RESPONSE_SCHEMAS[attribute.type]
            if not is_never_null(type_, attribute) and value != "values.json":
                value += ".nullable()"
            yield f"  {object_key(name)}: {value},\n"
        if type_.uid == UPLOAD and self.has_placeholders:
            yield from (f"  {name}: z.string().nullable(),\n" for name in PLACEHOLDER_FIELDS)

    def links(self, type_: Type) -> str:
        found = dict(self._links(type_))
        members = "".join(f"    {object_key(name)}: {link},\n" for name, link in found.items())
        return f"  {object_key(key_of(type_))}: {{\n{members}  }},\n".replace("{\n  }", "{}")

    def _links(self, type_: Type) -> Iterator[tuple[str, str]]:
        for attribute in type_.attributes.values():
            if not attribute.populatable:
                continue
            targets = [key_of(target) for target in targets_of(self.schema, attribute)]
            if targets or attribute.type == "dynamiczone":
                yield attribute.name, _link(_kind(attribute), targets)
        if type_.localized:
            yield "localizations", _link("many", [key_of(type_)])


def _kind(attribute: Attribute) -> str:
    if attribute.type == "dynamiczone":
        return "zone"
    if attribute.polymorphic:
        return "manyOf" if attribute.to_many else "oneOf"
    if attribute.to_many:
        return "many"
    return "always" if attribute.type == "component" and attribute.required else "one"


def _link(kind: str, targets: Iterable[str]) -> str:
    return f"{{ kind: {string_literal(kind)}, types: [{', '.join(map(string_literal, targets))}] }}"


def object_key(name: str) -> str:
    # Unless it is written as a computed key, `__proto__` would set the object's prototype.
    return f"[{string_literal(name)}]" if name == "__proto__" else property_name(name)


def enum_schema(values: Iterable[str]) -> str:
    return f"z.literal([{', '.join(map(string_literal, values))}])"


def write_zod_module(schema: Schema, settings: Settings) -> str:
    """Return a TypeScript module with the types and zod schemas."""
    writer = _Writer(schema, typescript_names(schema), settings.media.placeholders)
    types = type_order(schema)
    shapes = "".join(f"  {object_key(key_of(t))}: {writer.names[t.uid]},\n" for t in types)
    uids = "".join(f"  {object_key(key_of(t))}: {string_literal(t.uid)},\n" for t in types)
    links = "".join(map(writer.links, types))
    return "\n".join(
        [
            f'{_HEAD}import * as z from "zod";\n',
            write_typescript(schema, settings),
            _shared(settings) + _version(settings),
            *map(writer.object_schema, types),
            f"const SHAPES: {{ [T in TypeName]: z.ZodObject }} = {{\n{shapes}}};\n",
            f"const UIDS: {{ [T in TypeName]: string }} = {{\n{uids}}};\n",
            f"const LINKS: {{ [T in TypeName]: {{ [name: string]: Link }} }} = {{\n{links}}};\n",
            PRELUDE,
        ]
    )


def _shared(settings: Settings) -> str:
    last = "  large: imageFormat.optional(),\n"
    assert last in _SHARED
    shape = "imageFormat.extend({ size: z.null(), sizeInBytes: z.null() }).optional()"
    added = "".join(f"  {object_key(name)}: {shape},\n" for name in named_formats_of(settings))
    return _SHARED.replace(last, last + added)


def _version(settings: Settings) -> str:
    return (
        "const version = {\n  id: z.int(),\n  documentId: z.string(),\n"
        "  createdAt: z.iso.datetime(),\n  updatedAt: z.iso.datetime(),\n  publishedAt: z.iso.datetime(),\n"
        f"  locale: {enum_schema(settings.locales.available)},\n}};\n"
    )
