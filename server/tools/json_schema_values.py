"""JSON Schemas of attribute values. They accept a valid value however an editor's YAML parser reads it."""

import math
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from importlib import import_module
from itertools import product
from typing import Any, Literal

from server.api.operations.json_schema import JsonSchema
from server.documents.constraints import MAX_EMAIL_CHARS
from server.formats.tree import Plain, resolve_plain_values
from server.schema.model import Attribute

Format = Literal["json", "yaml", "front-matter"]
TIMESTAMP_KEYS = ("createdAt", "updatedAt", "publishedAt")

# --- patterns -------------------------------------------------------------------------------------

# Values can be surrounded by white space, and numbers can contain digits from any script, as in Python.
_SPACE = "[^!-~]*"
_DIGIT = r"(?:[0-9]|[^\x00-\x7f])"
_MONTH, _DAY = "(?:0?[1-9]|1[0-2])", "(?:0?[1-9]|[12][0-9]|3[01])"
_DAY_TEXT = f"[0-9]{{4}}-{_MONTH}-{_DAY}"
_ZONE = r"(?:[ \t]*(?:[Zz]|[-+][0-9]{1,2}(?::?[0-9]{2})?))?"
_CLOCK = r"(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]+)?)?" + _ZONE
_HOUR, _SIXTY = "(?:[01]?[0-9]|2[0-3])", "[0-5][0-9]"
_VALID_CLOCK = rf"(?:[Tt]|[ \t]+){_HOUR}:{_SIXTY}(?::{_SIXTY}(?:[.,][0-9]+)?)?" + _ZONE
_DATE = f"^{_SPACE}{_DAY_TEXT}(?:{_CLOCK})?{_SPACE}$"
_TIMESTAMP = rf"^{_SPACE}(?:{_DAY_TEXT}(?:{_VALID_CLOCK})?|-?[0-9]{{9,16}}(?:\.0+)?){_SPACE}$"
_TIME = rf"^{_SPACE}{_HOUR}:{_SIXTY}(?::{_SIXTY}(?:\.[0-9]{{1,6}})?)?{_SPACE}$"
_NUMBER = rf"^{_SPACE}[-+]?(?:\.?{_DIGIT})(?:[-+._eE]|{_DIGIT})*{_SPACE}$"
_INTEGER = rf"{_NUMBER}|^{_SPACE}0(?:o[0-7]+|x[0-9A-Fa-f]+){_SPACE}$"
_EMAIL = r"^[^@ \t\r\n]+@[^@ \t\r\n]+$"
_UID = r"^[A-Za-z0-9_.~-]*$"
_EMPTY = "^$"
# a character that `minLength` counts as two, as in JavaScript
_ASTRAL = r"[^\u0000-\uffff]"
# milliseconds for the years 1 to 9999
_EPOCH_MS = {"minimum": -62_135_596_800_000, "maximum": 253_402_300_799_999}

# --- scalars --------------------------------------------------------------------------------------

# A text attribute can also contain a number (or, in YAML, a boolean), which is read as text.
_TEXT_KINDS: Mapping[Format, tuple[str, ...]] = {
    "json": ("string", "number"),
    "yaml": ("string", "number", "boolean"),
    "front-matter": ("string", "number", "boolean"),
}
_TEXT_TYPES = frozenset({"string", "text", "richtext", "email", "password", "uid"})
_WORDS = ("true", "yes", "on", "false", "no", "off")
# For types that are not text, "" means null.
_VALUES: Mapping[str, JsonSchema] = {
    "integer": {"type": ["integer", "string"], "pattern": _INTEGER},
    "biginteger": {"type": ["integer", "string"], "pattern": _INTEGER},
    "float": {"type": ["number", "string"], "pattern": _NUMBER},
    "decimal": {"type": ["number", "string"], "pattern": _NUMBER},
    "date": {"type": ["string"], "pattern": _DATE},
    "time": {"type": ["string"], "pattern": _TIME},
    "datetime": {"type": ["string", "integer"], "pattern": _TIMESTAMP, **_EPOCH_MS},
    "timestamp": {"type": ["string", "integer"], "pattern": _TIMESTAMP, **_EPOCH_MS},
}
_BLOCKS: JsonSchema = {"type": "array", "items": {"type": "object"}}
_NOT_NULL = ["object", "array", "string", "number", "boolean"]


def value_schema(attribute: Attribute, format_: Format, *, optional: bool, draft: bool) -> JsonSchema:
    """Return the JSON Schema of a scalar attribute.

    If `draft` is set, rules that apply only to published documents are omitted.
    """
    kind = attribute.type
    if kind in _TEXT_TYPES:
        found = _text(attribute, format_, optional=optional, draft=draft)
    elif kind == "enumeration":
        found = {"enum": [value for text in attribute.enum for value in possible_values(text, format_)]}
        found["enum"] = _unique(found["enum"])
        if None in found["enum"]:  # The list contains a value that JSON can't represent.
            found = {"type": list(_TEXT_KINDS[format_])}
        elif optional:
            found["enum"] = _unique([*found["enum"], "", None])
    elif kind == "boolean":
        spelled = [f"^{_any_case(word)}$" for word in _WORDS]
        found = {"type": ["boolean", "string"], "pattern": "|".join([_EMPTY] * optional + spelled)}
    elif kind == "json":
        found = {} if optional else {"type": _NOT_NULL}
    elif kind in ("array", "blocks"):
        found = {"type": "array"} if kind == "array" else dict(_BLOCKS)
    else:
        found = dict(_VALUES[kind])
        if optional:
            found["pattern"] = f"{_EMPTY}|{found['pattern']}"
        if not draft and kind in ("integer", "biginteger", "float", "decimal"):
            found |= _limits(attribute)
    if optional:
        found = nullable(found)
    if attribute.has_default and kind != "password":
        found["default"] = attribute.default
    return found


def nullable(schema: JsonSchema) -> JsonSchema:
    if "type" not in schema:
        return schema
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    return {**schema, "type": [*kinds, "null"]}


def _text(attribute: Attribute, format_: Format, *, optional: bool, draft: bool) -> JsonSchema:
    found: JsonSchema = {"type": list(_TEXT_KINDS[format_])}
    # Passwords in files are hashes, so these rules don't apply to them.
    if draft or attribute.type == "password":
        return found
    rules: list[JsonSchema] = []
    if attribute.type == "email":
        rules.append({"pattern": _EMAIL})
        found["maxLength"] = MAX_EMAIL_CHARS
    if attribute.type == "uid":
        rules.append({"pattern": _UID})
    if attribute.regex:
        pattern = import_module("server.schema.patterns").convert_for_unicode_flag(attribute.regex)
        if pattern is not None:
            # An empty string is allowed, because forms send one for an empty field.
            rules.append({"pattern": pattern if attribute.required else f"{_EMPTY}|{pattern}"})
    if attribute.max_length is not None:
        longest = max(attribute.max_length, 0)
        found["maxLength"] = min(longest, found.get("maxLength", longest))
    rules += _shortest(attribute.min_length or 0)
    if len(rules) == 1:
        found |= rules[0]
    elif rules:
        found["allOf"] = rules
    return found


def _shortest(least: int) -> list[JsonSchema]:
    # In a content type, `minLength` counts UTF-16 code units. In JSON Schema, it counts characters.
    if least <= 0:
        return []
    if least == 1:
        return [{"minLength": 1}]
    return [{"anyOf": [{"minLength": least}, {"minLength": -(-least // 2), "pattern": _ASTRAL}]}]


def _any_case(word: str) -> str:
    return "".join(f"[{c.lower()}{c.upper()}]" for c in word)


def possible_values(text: str, format_: Format = "yaml") -> list[Any]:
    """Return every value that a parser might read if `text` is written without quotation marks.

    None stands for a value that JSON can't represent.
    """
    if text.lower() in ("true", "false"):
        words = {"".join(letters) for letters in product(*((c.lower(), c.upper()) for c in text))}
        same = [text, *sorted(words - {text})]
        return [text] if format_ == "json" else [text.lower() == "true", *same]
    try:
        value = resolve_plain_values(Plain(text))
    except ValueError:
        return [text, None]
    if value is None or isinstance(value, str):
        return [text]
    return [text, value]


def _unique(values: list[Any]) -> list[Any]:
    # The key distinguishes 1 from True, but not from 1.0.
    found: dict[tuple[bool, Any], Any] = {}
    for value in values:
        found.setdefault((isinstance(value, bool), value), value)
    return list(found.values())


# --- limits ---------------------------------------------------------------------------------------


def _limits(attribute: Attribute) -> JsonSchema:
    found = {"minimum": _json_limit(attribute.min), "maximum": _json_limit(attribute.max)}
    return {name: value for name, value in found.items() if value is not None}


def count_bounds(attribute: Attribute, *, optional: bool) -> JsonSchema:
    """Return the JSON Schema keywords that limit the number of components in an attribute."""
    minimum, maximum = _json_limit(attribute.min), _json_limit(attribute.max)
    shortest = max(1, math.ceil(minimum)) if minimum is not None else 1
    found: JsonSchema = {}
    if maximum is not None:
        found["maxItems"] = max(0, math.floor(maximum))
    if not optional:
        found["minItems"] = shortest
    elif shortest > 1:
        found["anyOf"] = [{"maxItems": 0}, {"minItems": shortest}]
    return found


def _json_limit(value: Any) -> int | float | None:
    try:
        number = Decimal(str(value)) if value is not None else None
    except InvalidOperation:
        return None
    if number is None or not number.is_finite():
        return None
    return int(number) if number == number.to_integral_value() else float(number)


# --- references -----------------------------------------------------------------------------------


def relation_schema(
    attribute: Attribute, format_: Format, uids: tuple[str, ...], *, optional: bool
) -> JsonSchema:
    """Return the JSON Schema of a relation or media attribute.

    `uids` are the uids of the content types to which the targets can belong.
    """
    if attribute.derived:
        return {"enum": [None, ""]}
    target = _target(attribute, format_, uids)
    one = dict(target)
    if "type" in one and not optional:
        one["minLength"] = 1
    alternatives = one.pop("anyOf", [one])
    items: JsonSchema = {"type": "array", "items": _or_null(target)}
    if not attribute.to_many:
        items["maxItems"] = 1
    if not optional:
        items["contains"] = {"not": {"type": "null"}}
    if optional:
        alternatives = [*alternatives, {"enum": ["", None]}]
    return {"anyOf": [*alternatives, items]}


def _or_null(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [*schema.get("anyOf", [schema]), {"type": "null"}]}


def _target(attribute: Attribute, format_: Format, uids: tuple[str, ...]) -> JsonSchema:
    text: JsonSchema = {"type": list(_TEXT_KINDS[format_])}
    if attribute.type == "media":
        return {**text, "description": "A path below uploads/."}
    members: JsonSchema = {"documentId": text}
    if attribute.morph:
        members["__type"] = {**text, "description": "The uid of the type.", "examples": list(uids)}
    mapping = {"type": "object", "properties": members, "required": list(members)}
    if attribute.morph:
        return mapping
    name = {**text, "description": "A documentId, or the path of the document in its folder."}
    return {"anyOf": [name, mapping]}


# --- keys with a special meaning ------------------------------------------------------------------


def own_id_schema(format_: Format) -> JsonSchema:
    kinds = [*_TEXT_KINDS[format_], "null"]
    text = "The document's id. By default, it follows from the file's path."
    return {"type": kinds, "pattern": "^[^/]+$", "description": text}


def timestamp_schema(key: str, *, draft: bool) -> JsonSchema:
    if draft and key == "publishedAt":
        return {"description": "Not read, because the file is a draft."}
    text = "A timestamp such as 2024-02-29T10:20:30Z. Written by Bifolio."
    return {"description": text, **nullable(_VALUES["datetime"])}
