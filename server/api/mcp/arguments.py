"""Validation of a tool's arguments against its input schema."""

from collections.abc import Iterator, Mapping
from typing import Any

from server.api.mcp.json_rpc import Json
from server.errors import ValidationError
from server.formats.tree import Plain
from server.schema.spelling import suggestion

_MAX_NAME_CHARS = 100
_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "boolean": (bool,),
    "null": (type(None),),
}
_NAMES: Mapping[str, str] = {
    "object": "an object",
    "array": "a list",
    "string": "a string",
    "integer": "an integer",
    "boolean": "true or false",
    "null": "null",
}


def check_arguments(arguments: Any, schema: Json) -> None:
    """Raise ValidationError if the arguments do not match a tool's input schema.

    Only the JSON Schema keywords that the tools use are supported.
    """
    for problem in _problems(arguments, schema, "The arguments"):
        raise ValidationError(problem)


def _problems(value: Any, schema: Json, where: str) -> Iterator[str]:
    types = schema.get("type", ())
    types = (types,) if isinstance(types, str) else types
    if types and not any(_is_of(value, name) for name in types):
        yield f"{where} must be {' or '.join(_NAMES[name] for name in types)}, not {_name_of(value)}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{where} must be {_one_of(schema['enum'])}"
    elif isinstance(value, dict):
        yield from _problems_of_object(value, schema, where)
    elif isinstance(value, list):
        yield from _problems_of_list(value, schema, where)
    elif type(value) is int:
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            yield f"{where} must be {low} or more" if value < low else f"{where} must be {high} or less"


def _problems_of_object(value: Json, schema: Json, where: str) -> Iterator[str]:
    known: Json = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f'{where}: "{name}" is missing'
    for name, item in value.items():
        if name in known:
            prefix = "" if where == "The arguments" else f"{where}: "
            yield from _problems(item, known[name], f'{prefix}"{name}"')
        elif schema.get("additionalProperties") is False:
            short = name[:_MAX_NAME_CHARS]
            yield f'{where}: unknown key "{short}"; {suggestion(short, known) or "use " + _listed(known)}'


def _problems_of_list(value: list[Any], schema: Json, where: str) -> Iterator[str]:
    low, high = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if not low <= len(value) <= high:
        yield f"{where} must have {low} to {high:,} items, but has {len(value):,}"
    elif "items" in schema:
        for number, item in enumerate(value):
            yield from _problems(item, schema["items"], f"{where}[{number}]")


def _name_of(value: Any) -> str:
    return next((text for name, text in _NAMES.items() if _is_of(value, name)), "a number with a fraction")


def _is_of(value: Any, name: str) -> bool:
    if isinstance(value, bool | Plain):
        return name == "boolean" and isinstance(value, bool)
    return isinstance(value, _TYPES[name])


def _one_of(values: list[Any]) -> str:
    return " or ".join(map(str, values)) if len(values) < 3 else f"one of {_listed(values)}"


def _listed(names: Any) -> str:
    return ", ".join(map(str, names))
