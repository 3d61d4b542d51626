"""The TypeScript types of one content type: its fields in responses, its links, its fields in requests."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from server.query.fields import targets_of
from server.schema.model import BUILT_IN, ROLE, STANDARD_FIELDS, UPLOAD, USER, Attribute, Schema, Type
from server.schema.naming import key_of
from server.schema.sentences import describe_attribute, describe_type
from server.tools.typescript.literals import comment, prop, text, union

# The TypeScript type of a value in a response (SHOWN) and in a request body (WRITTEN).
SHOWN: Mapping[str, str] = {
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
WRITTEN: Mapping[str, str] = {
    **SHOWN,
    "password": "string",
    "datetime": "string | Date",
    "timestamp": "string | Date",
    "biginteger": "number | string",
    "decimal": "number | string",
}
# Attributes of the built-in types that are never null.
_ALWAYS: Mapping[str, frozenset[str]] = {
    UPLOAD: frozenset({"name", "hash", "ext", "mime", "size", "url", "provider"}),
    USER: frozenset({"username", "email", "provider", "confirmed", "blocked"}),
    ROLE: frozenset({"name", "description", "type"}),
}


@dataclass(frozen=True, slots=True)
class Shapes:
    """Writes the types of a schema, each under its name in `names`."""

    schema: Schema
    names: Mapping[str, str]

    def of(self, type_: Type) -> str:
        """The types of one content type or component."""
        name = self.names[type_.uid]
        described = comment(describe_type(type_))
        base = "{\n  id: number;\n" if type_.kind == "component" else "Version & {\n"
        parts = [
            f"{described}export type {name} = {base}{''.join(self._shown(type_))}}};\n",
            f"export type {name}Links = {{\n{''.join(self._links(type_))}}};\n",
        ]
        if type_.uid not in BUILT_IN:
            parts.append(f"export type {name}Input = {{\n{''.join(self._input(type_))}}};\n")
        return "\n".join(parts).replace("{\n}", "{}")

    def entry(self, type_: Type) -> str:
        """The line of a type in the table of all types."""
        name = self.names[type_.uid]
        written = f"{name}Input" if type_.uid not in BUILT_IN else "never"
        shape = f"uid: {text(type_.uid)}; fields: {name}; links: {name}Links; input: {written}"
        return f"  {prop(key_of(type_))}: {{ {shape} }};\n"

    def _shown(self, type_: Type) -> Iterator[str]:
        for name in type_.default_fields:
            attribute = type_.columns[name]
            if type_.kind != "component" and name in STANDARD_FIELDS:
                continue
            value = union(attribute.enum) if attribute.type == "enumeration" else SHOWN[attribute.type]
            if type_.uid == UPLOAD and name == "formats":
                value = "ImageFormats"
            sure = attribute.required or name in _ALWAYS.get(type_.uid, ())
            yield _member(attribute, value if sure or value == "Json" else f"{value} | null")

    def _links(self, type_: Type) -> Iterator[str]:
        for attribute in type_.attributes.values():
            if attribute.populatable and (link := self._link(attribute)):
                yield _member(attribute, link)
        if type_.localized:
            yield comment(["The document in its other locales."], "  ")
            yield f"  localizations: Many<{text(key_of(type_))}>;\n"

    def _link(self, attribute: Attribute) -> str:
        """The link of an attribute; "" for a relation to a type that does not exist."""
        if attribute.type == "dynamiczone":
            return f"Zone<{self._keys(attribute.components)}>"
        if attribute.polymorphic:
            every = union(key_of(t) for t in targets_of(self.schema, attribute))
            return f"{'ManyOf' if attribute.to_many else 'OneOf'}<{every}>"
        uid = {"media": UPLOAD, "component": attribute.component}.get(attribute.type, attribute.target)
        if uid not in self.schema.types:
            return ""
        sure = attribute.type == "component" and attribute.required
        kind = "Many" if attribute.to_many else "Always" if sure else "One"
        return f"{kind}<{self._keys((str(uid),))}>"

    def _keys(self, uids: tuple[str, ...]) -> str:
        return union(key_of(self.schema.types[uid]) for uid in uids)

    def _input(self, type_: Type) -> Iterator[str]:
        for attribute in type_.attributes.values():
            value = self._written(attribute)
            if not value:
                continue
            needed = attribute.required and not attribute.derived
            optional = "" if needed and (attribute.default is None or not attribute.scalar) else "?"
            nullable = needed or value == "Json" or value.startswith("RelationInput")
            yield _member(attribute, value if nullable else f"{value} | null", optional)

    def _written(self, attribute: Attribute) -> str:
        """The type of an attribute in a request body; "" for a relation to a type that does not exist."""
        match attribute.type:
            case "enumeration":
                return union(attribute.enum)
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
        return WRITTEN[attribute.type]

    def _zone_entry(self, uid: str) -> str:
        return f"({{ __component: {text(uid)} }} & {self.names[uid]}Input)"


def _member(attribute: Attribute, value: str, optional: str = "") -> str:
    described = comment(describe_attribute(attribute), "  ")
    return f"{described}  {prop(attribute.name)}{optional}: {value};\n"
