"""JSON Schemas of content types and components.

Relations to types for which the caller lacks the permission `find` are left out.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from server.api.openapi.values import (
    OPERAND_KINDS,
    count_bounds,
    input_value_schema,
    value_schema,
    with_description,
)
from server.api.operations.json_schema import JsonSchema, list_of, object_of, ref
from server.auth.permissions import Actor, may_find
from server.query.queryable_attributes import targets_of
from server.schema.model import UPLOAD, Attribute, Schema, Type
from server.schema.sentences import describe_type
from server.write.validate import IGNORED_KEYS

SUFFIXES = ("Input", "Change", "Filters", "List", "Answer")
_LIST = {"type": "array"}
_STATUS: JsonSchema = {"enum": ["published", "modified", "draft"]}
_NOTE: JsonSchema = {
    "type": "string",
    "description": "After a write whose response exceeds a limit: why `data` contains only the ids.",
}


def _with_statuses(meta: JsonSchema) -> JsonSchema:
    return {**meta, "properties": {**meta["properties"], "publicationStatus": list_of(_STATUS)}}


@dataclass(frozen=True, slots=True)
class TypeSchemas:
    """JSON Schemas of content types and components for one caller.

    `names` maps the uid of each type to the name of its schema.
    """

    types: Schema
    names: Mapping[str, str]
    actor: Actor
    has_placeholders: bool  # whether media files have placeholders

    def all(self) -> Iterator[tuple[str, JsonSchema]]:
        for uid, type_ in self.types.types.items():
            name = self.names[uid]
            yield name, self.response_schema(type_)
            yield f"{name}Filters", self.filters(type_)
            if not uid.startswith("plugin::"):
                yield f"{name}Input", self.input_schema(type_, whole=True)
            if type_.kind != "component":
                yield f"{name}Change", self.input_schema(type_, whole=False)
        paged: JsonSchema = {
            "type": "object",
            "properties": {"pagination": ref("Pagination")},
            "required": ["pagination"],
        }
        for type_ in self.types.content_types:
            name = self.names[type_.uid]
            empty = {"type": "object", "properties": {"note": _NOTE}, "maxProperties": 1}
            drafted = type_.draft_publish
            properties = {"publicationStatus": _STATUS, "note": _NOTE}
            one = {"type": "object", "properties": properties} if drafted else empty
            many = _with_statuses(paged) if drafted else paged
            yield f"{name}Answer", object_of({"data": ref(name), "meta": one})
            yield f"{name}List", object_of({"data": list_of(ref(name)), "meta": many})

    def may_find(self, attribute: Attribute) -> bool:
        return bool(self.targets(attribute))

    def targets(self, attribute: Attribute) -> list[Type]:
        checked = attribute.type == "relation"
        found = targets_of(self.types, attribute)
        return [t for t in found if not checked or may_find(self.actor, t.uid)]

    def populatable(self, type_: Type) -> list[Attribute]:
        found = (a for a in type_.attributes.values() if a.populatable)
        return [a for a in found if self.may_find(a)]

    # --- responses ------------------------------------------------------------------------------

    def response_schema(self, type_: Type) -> JsonSchema:
        properties: JsonSchema = {"id": {"type": "integer"}}
        if type_.kind == "component":
            properties["__component"] = {"const": type_.uid, "description": "Only in dynamic zones."}
        else:
            properties["documentId"] = {"type": "string"}
            if self._may_be_named_in_relations():
                properties["__type"] = {
                    "const": type_.uid,
                    "description": "Only in relations to several types.",
                }
        for name, attribute in type_.columns.items():
            if name not in properties and attribute.selectable:
                properties[name] = _formats(type_, name) or value_schema(attribute)
        for link in self.populatable(type_):
            properties[link.name] = with_description(self._populated_schema(link), link)
        if type_.uid == UPLOAD:
            if self.has_placeholders:
                properties |= _PREVIEW
            properties["isUrlSigned"] = {
                "const": False,
                "description": "Only in responses of the media library.",
            }
        if type_.localized:
            others = {**_LIST, "items": ref(self.names[type_.uid])}
            properties["localizations"] = {**others, "description": "The other locales of the document."}
        return {
            "type": "object",
            "description": " ".join(describe_type(type_)),
            "properties": properties,
            "required": ["id"] if type_.kind == "component" else ["id", "documentId"],
            "additionalProperties": False,
        }

    def _may_be_named_in_relations(self) -> bool:
        every = (a for t in self.types.types.values() for a in t.attributes.values())
        return any(a.polymorphic for a in every)

    def _populated_schema(self, attribute: Attribute) -> JsonSchema:
        refs = [ref(self.names[t.uid]) for t in self.targets(attribute)]
        if attribute.type == "dynamiczone" or attribute.polymorphic:
            key = "__component" if attribute.type == "dynamiczone" else "__type"
            mapping = {t.uid: self._pointer(t) for t in self.targets(attribute)}
            discriminator = {"propertyName": key, "mapping": mapping}
            held: JsonSchema = {"oneOf": refs, "discriminator": discriminator, "required": [key]}
        else:
            held = refs[0]
        return {**_LIST, "items": held} if attribute.to_many else {"anyOf": [held, {"type": "null"}]}

    def _pointer(self, type_: Type, suffix: str = "") -> str:
        return f"#/components/schemas/{self.names[type_.uid]}{suffix}"

    # --- bodies --------------------------------------------------------------------------------

    def input_schema(self, type_: Type, *, whole: bool) -> JsonSchema:
        """Return the schema of a request body.

        If `whole` is set, required attributes must be present in the body.
        """
        properties = {a.name: self._input_schema(a) for a in type_.attributes.values() if self._writable(a)}
        needed = [a.name for a in type_.attributes.values() if a.name in properties and _is_required(a)]
        found: JsonSchema = {"type": "object", "properties": properties, "additionalProperties": False}
        if type_.kind == "component":
            properties["id"] = {
                "description": "The id of the component to change; omit it for a new component."
            }
            properties["__component"] = {"const": type_.uid, "description": "Required in dynamic zones."}
            properties["__temp_key__"] = {"description": "Ignored."}
        else:
            properties.update({name: {"description": "Ignored."} for name in IGNORED_KEYS})
        if whole and needed:
            found["required"] = needed
        if type_.draft_publish:
            found["description"] = (
                "In a draft, required attributes may be missing; lengths, bounds and patterns don't count."
            )
        return found

    def _writable(self, attribute: Attribute) -> bool:
        return attribute.type in ("media", "component", "dynamiczone") or (
            self.may_find(attribute) if attribute.type == "relation" else True
        )

    def _input_schema(self, attribute: Attribute) -> JsonSchema:
        match attribute.type:
            case "relation":
                named = attribute.polymorphic
                return with_description(ref("MorphInput" if named else "RelationInput"), attribute)
            case "media":
                return with_description(ref("MediaInput"), attribute)
            case "component":
                made = ref(f"{self.names[str(attribute.component)]}Input")
                if attribute.repeatable:
                    made = {**_LIST, "items": made, **count_bounds(attribute)}
            case "dynamiczone":
                made = {**_LIST, "items": self._zone_input(attribute), **count_bounds(attribute)}
            case _:
                return input_value_schema(attribute)
        return with_description(
            made if attribute.required else {"anyOf": [made, {"type": "null"}]}, attribute
        )

    def _zone_input(self, attribute: Attribute) -> JsonSchema:
        types = targets_of(self.types, attribute)
        mapping = {t.uid: self._pointer(t, "Input") for t in types}
        return {
            "oneOf": [ref(f"{self.names[t.uid]}Input") for t in types],
            "discriminator": {"propertyName": "__component", "mapping": mapping},
            "required": ["__component"],
        }

    # --- filters -------------------------------------------------------------------------------

    def filters(self, type_: Type) -> JsonSchema:
        own = ref(f"{self.names[type_.uid]}Filters")
        properties: JsonSchema = {}
        for name, attribute in type_.columns.items():
            if not attribute.queryable:
                continue
            if attribute.scalar:
                properties[name] = ref(f"{OPERAND_KINDS.get(attribute.type, 'Text')}Filter")
            elif not attribute.polymorphic and self.may_find(attribute):
                (target,) = self.targets(attribute)
                properties[name] = {"anyOf": [ref("LinkFilter"), ref(f"{self.names[target.uid]}Filters")]}
        properties |= {"$and": {**_LIST, "items": own}, "$or": {**_LIST, "items": own}, "$not": own}
        return {"type": "object", "properties": properties, "additionalProperties": False}


_PREVIEW: Mapping[str, JsonSchema] = {
    "placeholder": {"type": ["string", "null"], "description": "The image's BlurHash."},
    "color": {"type": ["string", "null"], "description": "The image's main color, such as #5b7f95."},
}


def _is_required(attribute: Attribute) -> bool:
    return attribute.required and not attribute.derived and not attribute.has_default


def _formats(type_: Type, name: str) -> JsonSchema | None:
    if type_.uid == UPLOAD and name == "formats":
        held = {"type": "object", "additionalProperties": ref("ImageFormat")}
        return {
            **held,
            "type": ["object", "null"],
            "description": "Smaller sizes of the image.",
        }
    return None
