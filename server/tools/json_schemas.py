"""Generator of JSON Schemas for document files. The schemas are never stricter than `bifolio check`."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from server.api.operations.json_schema import JsonSchema
from server.documents.file_keys import DRAFT_KEYS
from server.query.queryable_attributes import targets_of
from server.schema.model import DraftKey, Schema, Type, type_names
from server.schema.sentences import describe_attribute, describe_type
from server.tools.json_schema_values import (
    TIMESTAMP_KEYS,
    Format,
    count_bounds,
    nullable,
    own_id_schema,
    possible_values,
    relation_schema,
    timestamp_schema,
    value_schema,
)

METASCHEMA = "https://json-schema.org/draft/2020-12/schema"
# comment by which the command recognizes the files that it is allowed to delete
COMMENT = "Made by `bifolio schema --json-schema`. Do not edit: run it again."
FORMATS: tuple[Format, ...] = ("json", "yaml", "front-matter")
_FORMAT_NAMES: Mapping[Format, str] = {
    "json": "JSON document",
    "yaml": "YAML document",
    "front-matter": "front matter",
}
Status = Literal["published", "draft"]


def document_schemas(schema: Schema) -> dict[str, str]:
    """Return the text of each JSON Schema. The keys are paths such as `yaml/article.draft.json`."""
    return {
        f"{format_}/{schema_name(type_, status)}": _as_text(
            _Writer(schema, format_, status == "draft").document(type_)
        )
        for type_ in schema.content_types
        for format_ in FORMATS
        for status in statuses(type_)
    }


def statuses(type_: Type) -> tuple[Status, ...]:
    return ("published", "draft") if type_.draft_publish else ("published",)


def schema_name(type_: Type, status: Status) -> str:
    # API ids contain no dots, so these names can't be the same.
    return f"{type_.singular}.draft.json" if status == "draft" else f"{type_.singular}.json"


def _as_text(schema: JsonSchema) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


@dataclass(frozen=True)
class _Writer:
    """Generator of JSON Schemas for one format.

    If `draft` is set, rules that don't apply to drafts are omitted.
    """

    schema: Schema
    format: Format
    draft: bool

    @cached_property
    def names(self) -> Mapping[str, str]:
        return type_names(self.schema, (), ("Draft",))

    def document(self, type_: Type) -> JsonSchema:
        what = _FORMAT_NAMES[self.format]
        status = ", draft" if self.draft else ""
        found: JsonSchema = {
            "$schema": METASCHEMA,
            "$comment": COMMENT,
            "title": f"{type_.display} ({what}{status})",
            "description": " ".join(describe_type(type_)),
            "type": "object",
        }
        if type_.draft_key and not self.draft:
            draft = _Writer(self.schema, self.format, True)
            found["if"] = _marked(type_.draft_key)
            found["then"], found["else"] = draft.members(type_), self.members(type_)
            definitions = {**self.definitions(type_), **draft.definitions(type_)}
        else:
            found |= self.members(type_)
            definitions = self.definitions(type_)
        if definitions:
            found["$defs"] = {name: definitions[name] for name in sorted(definitions)}
        if "required" not in found:  # A file that contains only comments or null is an empty document.
            found["type"] = ["object", "null"]
        return found

    def definitions(self, type_: Type) -> dict[str, JsonSchema]:
        found: dict[str, JsonSchema] = {}
        waiting = [type_]
        while waiting:
            for uid in _components_of(waiting.pop()):
                name = self._name(uid)
                if name not in found:
                    component = self.schema.types[uid]
                    found[name] = self._component(component)
                    waiting.append(component)
        return found

    def members(self, type_: Type) -> JsonSchema:
        properties = dict(self._attributes(type_))
        if type_.draft_key and type_.draft_key.name not in properties:
            properties[type_.draft_key.name] = _draft_key_schema(type_.draft_key)
        properties |= {key: timestamp_schema(key, draft=self.draft) for key in TIMESTAMP_KEYS}
        properties["documentId"] = own_id_schema(self.format)
        properties["locale"] = {"description": "Not read: the locale follows from the file's path."}
        found: JsonSchema = {"properties": properties, **self._required(type_)}
        if type_.other_keys is None:
            # Unknown keys may be null, because files for site generators often contain keys without a value.
            found["additionalProperties"] = {"type": "null"} if type_.files else False
        return found

    def _component(self, type_: Type) -> JsonSchema:
        return {
            "type": "object",
            "description": " ".join(describe_type(type_)),
            "properties": {
                **dict(self._attributes(type_)),
                "id": {"description": "Not read: the id follows from the component's position."},
                "__component": {"description": "The component's name. Required in dynamic zones."},
            },
            **self._required(type_),
            "additionalProperties": False,
        }

    def _required(self, type_: Type) -> JsonSchema:
        names = [] if self.draft else list(self._required_names(type_))
        return {"required": names} if names else {}

    def _required_names(self, type_: Type) -> Iterator[str]:
        # Values can also come from the file name, the text below the front matter, or a default.
        in_name = type_.file_name or ""
        for name, attribute in type_.attributes.items():
            elsewhere = f"{{{name}}}" in in_name or name == type_.other_keys
            if self.format == "front-matter" and name == type_.body:
                elsewhere = True
            defaulted = attribute.has_default and attribute.type != "password"
            if attribute.required and not (attribute.derived or defaulted or elsewhere):
                yield name

    def _attributes(self, type_: Type) -> Iterator[tuple[str, JsonSchema]]:
        in_name = type_.file_name or ""
        for name, attribute in type_.attributes.items():
            description = " ".join(describe_attribute(attribute))
            if name == type_.other_keys:
                continue  # This attribute collects all unknown keys, so it has no key of its own.
            if self.format == "front-matter" and name == type_.body:
                text = f"{description} The text below the front matter takes precedence over this key."
                yield name, {"description": text}
                continue
            optional = self.draft or not attribute.required or f"{{{name}}}" in in_name
            yield name, {"description": description, **self._value(type_, name, optional=optional)}

    def _value(self, type_: Type, name: str, *, optional: bool) -> JsonSchema:
        attribute = type_.attributes[name]
        match attribute.type:
            case "relation" | "media":
                uids = tuple(t.uid for t in targets_of(self.schema, attribute))
                return relation_schema(attribute, self.format, uids, optional=optional)
            case "component" if not attribute.repeatable:
                found: JsonSchema = {"$ref": self._pointer(str(attribute.component))}
                return {"anyOf": [found, {"type": "null"}]} if optional else found
            case "component":
                items: JsonSchema = {"$ref": self._pointer(str(attribute.component))}
            case "dynamiczone":
                items = self._zone_item(attribute.components)
            case _:
                return value_schema(attribute, self.format, optional=optional, draft=self.draft)
        found = {"type": "array", "items": items}
        if not self.draft:
            found |= count_bounds(attribute, optional=optional)
        return nullable(found) if optional else found

    def _zone_item(self, uids: tuple[str, ...]) -> JsonSchema:
        if not uids:
            return {"not": {}}
        described: JsonSchema = {"enum": list(uids), "description": "The component of this entry."}
        chosen: list[JsonSchema] = [
            {
                "if": {"properties": {"__component": {"const": uid}}, "required": ["__component"]},
                "then": {"$ref": self._pointer(uid)},
            }
            for uid in uids
        ]
        return {
            "type": "object",
            "properties": {"__component": described},
            "required": ["__component"],
            "allOf": chosen,
        }

    def _name(self, uid: str) -> str:
        return self.names[uid] + ("Draft" if self.draft else "")

    def _pointer(self, uid: str) -> str:
        return f"#/$defs/{self._name(uid)}"


def _components_of(type_: Type) -> Iterator[str]:
    for attribute in type_.attributes.values():
        if attribute.component:
            yield attribute.component
        yield from attribute.components


def _marked(key: DraftKey) -> JsonSchema:
    return {"properties": {key.name: {"enum": possible_values(str(key.value))}}, "required": [key.name]}


def _draft_key_schema(key: DraftKey) -> JsonSchema:
    value = json.dumps(key.value, ensure_ascii=False)
    found: JsonSchema = {"description": f"{value} marks the document as a draft."}
    if isinstance(key.value, bool) or key in DRAFT_KEYS:
        found["examples"] = [True, False]
    return found
