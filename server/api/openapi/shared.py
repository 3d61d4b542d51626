"""JSON Schemas that do not depend on content types."""

from collections.abc import Iterator, Mapping
from typing import Any

from server.api.openapi.values import OPERANDS, nullable
from server.api.operations.json_schema import TEXT, JsonSchema, list_of, object_of, ref
from server.config.model import Settings
from server.documents.blocks import BLOCK_TYPES, NODES
from server.query.operators import LOGIC, OPERATORS, Operator
from server.service.images.custom_formats import custom_formats
from server.write.relation_input import OPERATIONS, POSITIONS

_ID: JsonSchema = {"type": "string", "minLength": 1, "description": "A documentId."}


def shared_schemas(settings: Settings) -> Iterator[tuple[str, JsonSchema]]:
    """Yield the name and definition of each schema."""
    yield "Error", _ERROR
    yield "Pagination", _PAGINATION
    yield "DryRun", _DRY_RUN
    yield "Block", _BLOCK
    yield "BlockInput", {**_BLOCK_INPUT}
    yield "InlineInput", {**_INLINE_INPUT}
    yield "ImageFormat", _image_format(settings)
    yield "MediaInput", _media()
    yield "RelationInput", _relation_input(_TARGET)
    yield "MorphInput", _relation_input(_MORPH_TARGET)
    yield "LinkFilter", _relation_filter()
    for kind, operand in OPERANDS.items():
        yield f"{kind}Filter", _scalar_filter(f"{kind}Filter", operand)


def _object(properties: Mapping[str, Any], *, closed: bool = True, required: bool = True) -> JsonSchema:
    found: JsonSchema = {"type": "object", "properties": dict(properties)}
    if required:
        found["required"] = list(properties)
    if closed:
        found["additionalProperties"] = False
    return found


_OF_AGENTS = "Only in responses of POST /mcp, whose errors are JSON-RPC errors, too."
_DETAILED_ERROR = _object(
    {
        "status": {"type": "integer", "description": "The HTTP status of the response."},
        "name": {"type": "string", "description": "The kind of error."},
        "message": {"type": "string", "description": "What is wrong, for people."},
        "details": {"type": "object", "description": "More about the error, for programs; may be empty."},
    }
)
_DETAILED_ERROR["properties"]["code"] = {"type": "integer", "description": _OF_AGENTS}
_ERROR = _object({"data": {"type": "null"}, "error": _DETAILED_ERROR})
_ERROR["properties"] |= {"jsonrpc": {"const": "2.0", "description": _OF_AGENTS}, "id": {"type": "null"}}
_CHANGED_FILE = object_of(
    {
        "path": TEXT,
        "action": {"enum": ["create", "update", "delete"]},
        "lines": {**list_of(TEXT), "description": "The lines of a unified diff."},
    }
)
_DRY_RUN: JsonSchema = {
    **object_of({"data": object_of({"files": list_of(_CHANGED_FILE)})}),
    "description": "With `dryRun=true`: the files that would change.",
}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_PAGINATION: JsonSchema = {
    "description": "By page or by offset, as requested; no totals with `pagination[withCount]=false`.",
    "anyOf": [
        {
            **_object(
                {"page": _COUNT, "pageSize": _COUNT, "pageCount": _COUNT, "total": _COUNT}, required=False
            )
        },
        {**_object({"start": _COUNT, "limit": _COUNT, "total": _COUNT}, required=False)},
    ],
}
_BLOCK: JsonSchema = {
    "type": "object",
    "description": f"A block has a type ({', '.join(BLOCK_TYPES)}) and children: texts, links and "
    "list items. Blocks are returned as they are in the file, even if they are not valid.",
    "example": {"type": "paragraph", "children": [{"type": "text", "text": "Hello"}]},
}
_INLINES: JsonSchema = {"type": "array", "items": ref("InlineInput")}
_BLOCK_INPUT: JsonSchema = {
    "type": "object",
    "description": "A list requires `format`, a heading `level`, and a link `url`.",
    "properties": {"type": {"enum": list(BLOCK_TYPES)}, "children": {**_INLINES, "minItems": 1}},
    "required": ["type", "children"],
    "example": _BLOCK["example"],
}
_INLINE_INPUT: JsonSchema = {
    "type": "object",
    "properties": {"type": {"enum": list(NODES)}, "children": _INLINES, "text": {}},
    "required": ["type"],
}
_IMAGE_FORMAT = _object(
    {
        "name": TEXT,
        "hash": TEXT,
        "ext": TEXT,
        "mime": TEXT,
        "path": {"type": "null"},
        "width": {"type": "integer"},
        "height": {"type": "integer"},
        "size": {"type": "number", "description": "Size in kB."},
        "sizeInBytes": {"type": "integer"},
        "url": TEXT,
    }
)


def _image_format(settings: Settings) -> JsonSchema:
    if custom_formats(settings.media) is None:
        return _IMAGE_FORMAT
    unknown = "null in the formats of media.formats."
    sizes = {
        "size": {"type": ["number", "null"], "description": f"Size in kB, {unknown}"},
        "sizeInBytes": {"type": ["integer", "null"], "description": f"Size in bytes, {unknown}"},
    }
    return {**_IMAGE_FORMAT, "properties": {**_IMAGE_FORMAT["properties"], **sizes}}


# Clients may send back a document from a populated response. Only its documentId is used.
_TARGET: JsonSchema = {
    "anyOf": [_ID, {"type": "object", "properties": {"documentId": _ID}, "required": ["documentId"]}]
}
_MORPH_TARGET: JsonSchema = {
    "type": "object",
    "properties": {
        "documentId": _ID,
        "__type": {"type": "string", "description": "The uid of the target's type."},
    },
    "required": ["documentId", "__type"],
}


def _relation_input(target: JsonSchema) -> JsonSchema:
    several = {"anyOf": [target, {"type": "array", "items": target}, {"type": "null"}]}
    changes = dict.fromkeys(OPERATIONS, several)
    changes["connect"] = _connect(target)
    return {
        "description": "A documentId, a list of them, null, or `set`, `connect` and `disconnect`. "
        "The targets must exist.",
        "anyOf": [*several["anyOf"], _object(changes, required=False)],
    }


def _connect(target: JsonSchema) -> JsonSchema:
    flags = {name: {"type": "boolean"} for name in POSITIONS if name in ("start", "end")}
    beside = {name: target for name in POSITIONS if name not in flags}
    position = nullable({**_object({**flags, **beside}, required=False), "minProperties": 1})
    placed = next(t for t in target.get("anyOf", [target]) if t["type"] == "object")
    placed = {**placed, "properties": {**placed["properties"], "position": position}}
    one = {"anyOf": [*(t for t in target.get("anyOf", []) if t["type"] == "string"), placed]}
    return {"anyOf": [*one["anyOf"], {"type": "array", "items": one}, {"type": "null"}]}


def _media() -> JsonSchema:
    key = {"type": ["integer", "string"]}
    one = {
        "anyOf": [
            key,
            {"type": "object", "properties": {"documentId": key}, "required": ["documentId"]},
            {"type": "object", "properties": {"id": key}, "required": ["id"]},
        ]
    }
    several = {"anyOf": [*one["anyOf"], {"type": "array", "items": one}, {"type": "null"}]}
    return {
        "description": "A file's id or documentId, a list of them, null, or `set`, `connect`, `disconnect`. "
        "The targets must exist.",
        "anyOf": [*several["anyOf"], _object(dict.fromkeys(OPERATIONS, several), required=False)],
    }


# --- filters -------------------------------------------------------------------------------------


def _scalar_filter(name: str, operand: JsonSchema) -> JsonSchema:
    properties: JsonSchema = {o.name: _operator(o, operand) for o in OPERATORS.values()}
    for logic in ("$and", "$or"):
        properties[logic] = {
            "type": "array",
            "items": ref(name),
            "description": f"{LOGIC[logic].capitalize()}.",
        }
    properties["$not"] = {**ref(name), "description": f"{LOGIC['$not'].capitalize()}."}
    return {
        "anyOf": [
            operand,
            {"type": "array", "items": operand, "minItems": 1},
            _object(properties, required=False),
        ]
    }


def _operator(operator: Operator, operand: JsonSchema) -> JsonSchema:
    operands: Mapping[str, JsonSchema] = {
        "value": operand,
        "list": {"type": "array", "items": operand, "minItems": 1},
        "pair": {"type": "array", "items": operand, "minItems": 2, "maxItems": 2},
        "text": TEXT,
        "flag": {"type": "boolean"},
    }
    return {**operands[operator.operand_kind], "description": f"The value {operator.description}."}


def _relation_filter() -> JsonSchema:
    ids = {"type": "array", "items": _ID, "minItems": 1}
    one, several = ("$eq", "$ne"), ("$in", "$notIn")
    flags = {name: o for name, o in OPERATORS.items() if o.operand_kind == "flag"}
    properties: JsonSchema = {
        **{name: {**_ID, "description": f"The documentId {OPERATORS[name].description}."} for name in one},
        **{
            name: {**ids, "description": f"The documentId {OPERATORS[name].description}."} for name in several
        },
        **{name: _operator(operator, {}) for name, operator in flags.items()},
    }
    return {"anyOf": [_ID, ids, _object(properties, required=False)]}
