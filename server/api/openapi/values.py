"""JSON Schemas of attribute values.

The schemas of responses contain no constraints such as maximum lengths, because stored values may violate
them.
"""

from collections.abc import Mapping
from typing import Any

from server.api.operations.json_schema import TEXT, TIMESTAMP, JsonSchema
from server.documents.constraints import UID_PATTERN
from server.schema.model import Attribute
from server.schema.sentences import describe_attribute

_NUMBER_TEXT = r"^\s*[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]{1,2})?\s*$"
_INTEGER_TEXT = r"^\s*[-+]?[0-9]+\s*$"
_TRUTH_TEXT = r"^(0|1|[tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$"
_TIME = r"^[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}$"
_TIME_TEXT = r"^([01]?[0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,3})?$"
# The range of Unix times in milliseconds for the years 1 to 9999.
_EPOCH_MS = {"minimum": -62_135_596_800_000, "maximum": 253_402_300_799_999}

# By attribute type.
RESPONSE_VALUES: Mapping[str, JsonSchema] = {
    "string": TEXT,
    "text": TEXT,
    "richtext": TEXT,
    "blocks": {"type": "array", "items": {"$ref": "#/components/schemas/Block"}},
    "enumeration": TEXT,
    "email": TEXT,
    "uid": TEXT,
    "date": {"type": "string", "format": "date"},
    "time": {"type": "string", "pattern": _TIME},
    "datetime": TIMESTAMP,
    "timestamp": TIMESTAMP,
    "integer": {"type": "integer"},
    "biginteger": {"type": "string", "pattern": "^-?[0-9]+$"},
    "float": {"type": "number"},
    "decimal": {"type": "number"},
    "boolean": {"type": "boolean"},
    "array": {"type": "array"},
    "json": {},
}
_TIMESTAMP_WRITTEN: JsonSchema = {"type": ["string", "integer"], "format": "date-time", **_EPOCH_MS}
# By attribute type. Numbers may also be sent as strings.
BODY_VALUES: Mapping[str, JsonSchema] = {
    **RESPONSE_VALUES,
    "blocks": {"type": "array", "items": {"$ref": "#/components/schemas/BlockInput"}},
    "email": {"type": "string", "format": "email"},
    "uid": {"type": "string", "pattern": UID_PATTERN.pattern},
    "password": {"type": "string", "format": "password"},
    "time": {"type": "string", "pattern": _TIME_TEXT},
    "datetime": _TIMESTAMP_WRITTEN,
    "timestamp": _TIMESTAMP_WRITTEN,
    "integer": {"type": ["integer", "string"], "pattern": _INTEGER_TEXT},
    "biginteger": {"type": ["integer", "string"], "pattern": _INTEGER_TEXT},
    "float": {"type": ["number", "string"], "pattern": _NUMBER_TEXT},
    "decimal": {"type": ["number", "string"], "pattern": _NUMBER_TEXT},
    "boolean": {"type": ["boolean", "string"], "pattern": _TRUTH_TEXT},
}
# The schema for operands in filters, by attribute type.
OPERAND_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("integer", "biginteger"), "Integer"),
    **dict.fromkeys(("float", "decimal"), "Number"),
    **dict.fromkeys(("datetime", "timestamp"), "Timestamp"),
    "boolean": "Boolean",
    "date": "Date",
    "time": "Time",
}
OPERANDS: Mapping[str, JsonSchema] = {
    "Text": TEXT,
    "Integer": {"type": "integer"},
    "Number": {"type": "number"},
    "Boolean": {"type": "boolean"},
    "Date": {"type": "string", "format": "date"},
    "Time": {"type": "string", "pattern": _TIME_TEXT},
    "Timestamp": _TIMESTAMP_WRITTEN,
}
_TEXT_TYPES = ("string", "text", "richtext", "enumeration", "email", "uid", "password")
_NUMBER_TYPES = ("integer", "biginteger", "float", "decimal")


def nullable(schema: Mapping[str, Any]) -> JsonSchema:
    """Return a schema that also allows null."""
    if "$ref" in schema:
        return {"anyOf": [dict(schema), {"type": "null"}]}
    if "type" not in schema:
        return dict(schema)
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    values = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [*kinds, "null"], **values}


def with_description(schema: Mapping[str, Any], attribute: Attribute) -> JsonSchema:
    return {**schema, "description": " ".join(describe_attribute(attribute))}


def value_schema(attribute: Attribute) -> JsonSchema:
    values = {"enum": list(attribute.enum)} if attribute.type == "enumeration" else {}
    return with_description(nullable({**RESPONSE_VALUES[attribute.type], **values}), attribute)


def input_value_schema(attribute: Attribute) -> JsonSchema:
    """Return the schema of a scalar attribute in request bodies."""
    schema = {**BODY_VALUES[attribute.type], **dict(_bounds(attribute))}
    if attribute.regex:
        patterns = [p for p in (schema.get("pattern"), attribute.regex) if p]
        schema["pattern"] = patterns[-1]
        if len(patterns) > 1:
            schema["allOf"] = [{"pattern": patterns[0]}]
    if attribute.type == "enumeration":
        schema["enum"] = list(attribute.enum)
    if attribute.default is not None:
        schema["default"] = attribute.default
    return with_description(schema if attribute.required else nullable(schema), attribute)


def _bounds(attribute: Attribute) -> list[tuple[str, Any]]:
    least, most = attribute.min, attribute.max
    found: list[tuple[str, Any]] = []
    if attribute.type in _TEXT_TYPES:
        found = [("minLength", attribute.min_length), ("maxLength", attribute.max_length)]
    elif attribute.type in _NUMBER_TYPES:
        found = [("minimum", _number(least)), ("maximum", _number(most))]
    return [(name, value) for name, value in found if value is not None]


def count_bounds(attribute: Attribute) -> JsonSchema:
    found = {"minItems": _number(attribute.min), "maxItems": _number(attribute.max)}
    return {name: value for name, value in found.items() if value is not None}


def _number(value: Any) -> int | float | None:
    if value is None or isinstance(value, int | float):
        return value
    number = float(value)
    return int(number) if number.is_integer() else number
