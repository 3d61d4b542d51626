"""Helpers that build JSON Schemas."""

from collections.abc import Mapping
from typing import Any

JsonSchema = dict[str, Any]
JSON = "application/json"
# Statuses of errors that are common to all reads or writes.
READ = (400, 401, 403, 500)
READ_ONE = (*READ, 404)
WRITE = (*READ, 409, 413, 503, 507)

FLAG: JsonSchema = {"type": "boolean"}
NUMBER: JsonSchema = {"type": "integer"}
COUNT: JsonSchema = {"type": "integer", "minimum": 0}
NINE_DIGITS: JsonSchema = {"type": "integer", "minimum": 0, "maximum": 999_999_999}
OBJECT: JsonSchema = {"type": "object"}
STATUS: JsonSchema = {"enum": ["published", "draft"]}
TEXT: JsonSchema = {"type": "string"}
TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}
TIMESTAMP: JsonSchema = {"type": "string", "format": "date-time"}

TAG = {"schema": TEXT, "description": "Entity tag: the version of the content of the response."}


def ref(name: str, section: str = "schemas") -> JsonSchema:
    return {"$ref": f"#/components/{section}/{name}"}


def parameter_refs(*names: str) -> list[JsonSchema]:
    """Return references to shared parameters. The references to undefined parameters are removed later."""
    return [ref(name, "parameters") for name in names]


def list_of(item: JsonSchema, **bounds: int) -> JsonSchema:
    return {"type": "array", "items": item, **bounds}


def or_null(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


def object_of(properties: Mapping[str, Any], optional: tuple[str, ...] = ()) -> JsonSchema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": [name for name in properties if name not in optional],
        "additionalProperties": False,
    }


def json_content(schema: JsonSchema, example: Any = None) -> JsonSchema:
    return {JSON: {"schema": schema} | ({} if example is None else {"example": example})}


def body_of(schema: JsonSchema, example: Any = None, *, required: bool = True) -> JsonSchema:
    return {"required": required, "content": json_content(schema, example)}


def response_doc(description: str, schema: JsonSchema | None = None, *, has_etag: bool = False) -> JsonSchema:
    found: JsonSchema = {"description": description}
    if has_etag:
        found["headers"] = {"ETag": TAG}
    if schema is not None:
        found["content"] = json_content(schema)
    return found


def in_query(name: str, schema: JsonSchema, description: str = "", **more: Any) -> JsonSchema:
    entry = {"description": description} if description else {}
    return {"name": name, "in": "query", **entry, **more, "schema": schema}


def in_path(name: str, description: str, schema: JsonSchema | None = None) -> JsonSchema:
    schema = schema or {**TEXT, "minLength": 1}
    return {"name": name, "in": "path", "required": True, "description": description, "schema": schema}


def in_header(name: str, description: str, **bounds: Any) -> JsonSchema:
    return {"name": name, "in": "header", "description": description, "schema": {**TEXT, **bounds}}
