"""Generator of a typed Python client."""

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from server.config.model import Settings
from server.query.operators import OPERATORS
from server.query.queryable_attributes import target_of, targets_of
from server.schema.model import BUILT_IN, STANDARD_FIELDS, UPLOAD, Attribute, Schema, Type, type_names
from server.schema.sentences import describe_attribute, describe_type
from server.storage.images.variants import PLACEHOLDER_FIELDS
from server.tools.typescript import is_never_null, type_order

_TYPING = "from typing import "
_MORE_TYPING = f"{_TYPING}Never, NotRequired, Required\n"  # imports that only the generated part needs
PRELUDE = (
    (Path(__file__).parent / "python_prelude.py")
    .read_text(encoding="utf-8")
    .replace(_TYPING, _MORE_TYPING + _TYPING, 1)
)
_HEAD = "# Made by `bifolio types --python` from this site's content types. Do not edit: run it again.\n"
_DECLARED = re.compile(r"^(?:class |def )?(\w+)(?=[(:]| = )", re.MULTILINE)
_IMPORTED = re.compile(r"^(?:from \S+ )?import (.+)$", re.MULTILINE)
_GENERATED = ("Client", "Locale", "TextCondition", "NumberCondition", "FlagCondition", "DateCondition")
_SUFFIXES = ("Draft", "Input", "Changes", "Filters", "Field", "Link", "Entry", "EntryDraft", "EntryInput")

# by attribute type
RESPONSE_TYPES: Mapping[str, str] = {
    **dict.fromkeys(("string", "text", "richtext", "email", "uid"), "str"),
    **dict.fromkeys(("date", "time", "datetime", "timestamp", "biginteger"), "str"),
    "blocks": "list[dict[str, Any]]",
    "integer": "int",
    "float": "float",
    "decimal": "float",
    "boolean": "bool",
    "array": "list[Any]",
    "json": "Any",
}
BODY_TYPES: Mapping[str, str] = {
    **RESPONSE_TYPES,
    "password": "str",
    "date": "str | date",
    "time": "str | time",
    "datetime": "str | date",
    "timestamp": "str | date",
    "biginteger": "int | str",
    "decimal": "float | Decimal | str",
    "blocks": "Sequence[Mapping[str, Any]]",
    "array": "Sequence[Any]",
}
# Python types of operands
_CONDITIONS: Mapping[str, str] = {
    "Text": "str",
    "Number": "float | Decimal | str",
    "Flag": "bool",
    "Date": "str | date | time",
}
_CONDITION_OF: Mapping[str, str] = {
    **dict.fromkeys(("integer", "biginteger", "float", "decimal"), "Number"),
    **dict.fromkeys(("date", "time", "datetime", "timestamp"), "Date"),
    "boolean": "Flag",
}
_TAKES: Mapping[str, str] = {
    "value": "{}",
    "list": "Sequence[{}]",
    "pair": "Sequence[{}]",
    "text": "str",
    "flag": "bool",
}
Row = tuple[str, str, str]  # key, Python type, description

# --- TypedDicts -----------------------------------------------------------------------------------


def string_literal(value: str) -> str:
    return '"' + "".join(_ESCAPES.get(c, c if c.isprintable() else _escaped(c)) for c in value) + '"'


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n"}


def _escaped(character: str) -> str:
    return f"\\U{ord(character):08x}"


def literal_type(values: Iterable[str]) -> str:
    found = ", ".join(map(string_literal, values))
    return f"Literal[{found}]" if found else "Never"


def typed_dict(name: str, rows: Iterable[Row], about: str = "", *, total: bool = True) -> str:
    """Return the declaration of a TypedDict with the keys in `rows`. `about` is the comment above it."""
    comment = f"# {_line(about)}\n" if about else ""
    lines, keys = [], set[str]()
    for key, value, described in rows:
        if key in keys:  # Skip duplicates: a component can have an attribute with the same name.
            continue
        keys.add(key)
        if described:
            lines.append(f"        # {_line(described)}\n")
        lines.append(f"        {string_literal(key)}: {string_literal(value)},\n")
    body = f"{{\n{''.join(lines)}    }}" if lines else "{}"
    end = "" if total else "\n    total=False,"
    return f"{comment}{name} = TypedDict(\n    {string_literal(name)},\n    {body},{end}\n)\n"


def _line(described: str) -> str:
    return "".join(c if c.isprintable() else " " for c in " ".join(described.split()))


@dataclass(frozen=True)
class _Writer:
    schema: Schema
    names: Mapping[str, str]
    has_placeholders: bool

    @cached_property
    def in_zones(self) -> frozenset[str]:
        every = (a for t in self.schema.types.values() for a in t.attributes.values())
        return frozenset(uid for attribute in every for uid in attribute.components)

    def declarations_for(self, type_: Type) -> Iterator[str]:
        name, about = self.names[type_.uid], " ".join(describe_type(type_))
        entry = ("__component", literal_type([type_.uid]), "")
        whole = list(self._response_rows(type_, draft=False))
        drafts = list(self._response_rows(type_, draft=True))
        yield typed_dict(name, whole, about)
        yield typed_dict(f"{name}Draft", drafts, f"{name}, as a draft or with `fields`.", total=False)
        if type_.uid in self.in_zones:
            yield typed_dict(f"{name}Entry", [entry, *whole])
            required = ("__component", f"Required[{entry[1]}]", "")
            yield typed_dict(f"{name}EntryDraft", [required, *drafts], total=False)
        if type_.uid not in BUILT_IN:
            yield typed_dict(f"{name}Input", self._input(type_, partial=False))
        if type_.uid in self.in_zones:
            yield typed_dict(f"{name}EntryInput", [entry, *self._input(type_, partial=False)])
        if type_.kind == "component" or type_.uid in BUILT_IN:
            yield typed_dict(f"{name}Filters", self._filters(type_), total=False)
            return
        yield typed_dict(f"{name}Changes", self._input(type_, partial=True), total=False)
        yield typed_dict(f"{name}Filters", self._filters(type_), total=False)
        fields = ("documentId", *type_.default_fields)
        yield f"{name}Field = {literal_type(fields)}\n{name}Link = {literal_type(type_.populatable)}\n"

    def _response_rows(self, type_: Type, *, draft: bool) -> Iterator[Row]:
        yield "id", "Required[int]" if draft else "int", ""
        if type_.kind != "component":
            yield "documentId", "Required[str]" if draft else "str", ""
        for name in type_.default_fields:
            attribute = type_.columns[name]
            if type_.kind != "component" and name in STANDARD_FIELDS:
                value = "Locale" if name == "locale" else "str"
                yield name, value if not draft or name != "publishedAt" else "str | None", ""
                continue
            value = self._scalar(attribute, RESPONSE_TYPES)
            sure = value == "Any" or (is_never_null(type_, attribute) and not draft)
            yield name, value if sure else f"{value} | None", _about(attribute)
        if type_.uid == UPLOAD and self.has_placeholders:
            yield from ((name, "str | None", "") for name in PLACEHOLDER_FIELDS)
        suffix = "Draft" if draft else ""
        for attribute in type_.attributes.values():
            if attribute.populatable and (value := self._populated_type(attribute, suffix)):
                yield attribute.name, value if draft else f"NotRequired[{value}]", _about(attribute)
        if type_.localized:
            value = f"list[{self.names[type_.uid]}{suffix}]"
            yield "localizations", value if draft else f"NotRequired[{value}]", "The other locales."

    def _populated_type(self, attribute: Attribute, suffix: str) -> str:
        """Return the Python type of a populated attribute, or "" if its target type is unknown."""
        if attribute.type == "dynamiczone":
            entries = [f"{self.names[uid]}Entry{suffix}" for uid in attribute.components]
            return f"list[{' | '.join(entries) or 'Never'}]"
        if attribute.polymorphic:
            return "list[dict[str, Any]]" if attribute.to_many else "dict[str, Any] | None"
        target = target_of(self.schema, attribute)
        if target is None:
            return ""
        name = f"{self.names[target.uid]}{suffix}"
        if attribute.to_many:
            return f"list[{name}]"
        is_sure = attribute.type == "component" and attribute.required and not suffix
        return name if is_sure else f"{name} | None"

    def _scalar(self, attribute: Attribute, types: Mapping[str, str]) -> str:
        return literal_type(attribute.enum) if attribute.type == "enumeration" else types[attribute.type]

    def _input(self, type_: Type, *, partial: bool) -> Iterator[Row]:
        for attribute in type_.attributes.values():
            value = self._input_type(attribute)
            if not value:
                continue
            needed = attribute.required and not attribute.derived
            if not needed and value not in ("Any", "RelationInput"):
                value += " | None"
            optional = partial or not needed or attribute.has_default
            shown = f"NotRequired[{value}]" if optional and not partial else value
            yield attribute.name, shown, _about(attribute)

    def _input_type(self, attribute: Attribute) -> str:
        match attribute.type:
            case "relation":
                return "RelationInput" if targets_of(self.schema, attribute) else ""
            case "media":
                return "MediaInput | Sequence[MediaInput]" if attribute.multiple else "MediaInput"
            case "component":
                name = f"{self.names[str(attribute.component)]}Input"
                return f"Sequence[{name}]" if attribute.repeatable else name
            case "dynamiczone":
                entries = [f"{self.names[uid]}EntryInput" for uid in attribute.components]
                return f"Sequence[{' | '.join(entries) or 'Never'}]"
        return self._scalar(attribute, BODY_TYPES)

    def _filters(self, type_: Type) -> Iterator[Row]:
        own = f"{self.names[type_.uid]}Filters"
        for name, attribute in type_.columns.items():
            if not attribute.queryable or name == "id":
                continue
            if attribute.scalar:
                kind = _CONDITION_OF.get(attribute.type, "Text")
                operand = _CONDITIONS[kind]
                yield name, f"{operand} | Sequence[{operand}] | {kind}Condition", ""
            elif (target := target_of(self.schema, attribute)) is not None:
                yield name, f"str | Sequence[str] | {self.names[target.uid]}Filters | TextCondition", ""
        yield "$and", f"Sequence[{own}]", ""
        yield "$or", f"Sequence[{own}]", ""
        yield "$not", own, ""


def _about(attribute: Attribute) -> str:
    return " ".join(describe_attribute(attribute))


# --- module ---------------------------------------------------------------------------------------


def write_python_module(schema: Schema, settings: Settings) -> str:
    """Return the source code of a Python module with a typed client."""
    writer = _Writer(schema, _names(schema), settings.media.placeholders)
    parts = [
        _HEAD + PRELUDE.rstrip("\n") + "\n",
        f"Locale = {literal_type(settings.locales.available)}\n",
        *(_condition(kind, operand) for kind, operand in _CONDITIONS.items()),
        f"# --- content types {'-' * 80}\n",
        *(part for type_ in type_order(schema) for part in writer.declarations_for(type_)),
        _client(schema, writer.names),
    ]
    return "\n".join(parts)


def _names(schema: Schema) -> Mapping[str, str]:
    imported = {name.strip() for line in _IMPORTED.findall(PRELUDE) for name in line.split(",")}
    taken = {*_DECLARED.findall(PRELUDE), *imported, *_GENERATED, *dir(builtins)}
    return type_names(schema, sorted(taken), _SUFFIXES)


def _condition(kind: str, operand: str) -> str:
    rows = (
        (o.name, _TAKES[o.operand_kind].format(operand), f"The value {o.description}.")
        for o in OPERATORS.values()
    )
    own = f"{kind}Condition"
    logic = (("$and", f"Sequence[{own}]", ""), ("$or", f"Sequence[{own}]", ""), ("$not", own, ""))
    return typed_dict(own, (*rows, *logic), total=False)


# suffixes of the generic classes' type parameters
_COLLECTION_PARTS = ("", "Draft", "Input", "Changes", "Filters", "Field", "Link")
_SINGLE_PARTS = ("", "Draft", "Changes", "Field", "Link")


def _client(schema: Schema, names: Mapping[str, str]) -> str:
    lines = []
    for attribute, type_ in _client_attributes(schema).items():
        name = names[type_.uid]
        is_collection = type_.kind == "collectionType"
        kind, resource = ("Collection", type_.plural) if is_collection else ("Single", type_.singular)
        parts = _COLLECTION_PARTS if is_collection else _SINGLE_PARTS
        types = "".join(f"            {name}{part},\n" for part in parts)
        created = f"{kind}(connection, {string_literal(resource)})"
        lines.append(f"        self.{attribute}: {kind}[\n{types}        ] = {created}\n")
    return (
        "class Client:\n"
        '    """Client of the site, with an attribute for each content type."""\n\n'
        "    def __init__(\n"
        '        self, url: str = "http://localhost:1337", token: str | None = None, *, '
        "timeout_s: float = 30\n"
        "    ) -> None:\n"
        '        """Create a client for the server at a URL. Nothing is sent yet."""\n'
        f"        connection = Connection(url, token, timeout_s)\n{''.join(lines)}"
        "        self.connection = connection\n"
    )


def _client_attributes(schema: Schema) -> Mapping[str, Type]:
    found: dict[str, Type] = {}
    for type_ in schema.content_types:
        resource = type_.plural if type_.kind == "collectionType" else type_.singular
        name = resource.replace("-", "_")
        while keyword.iskeyword(name) or name in found or name == "connection":
            name += "_"
        found[name] = type_
    return found
