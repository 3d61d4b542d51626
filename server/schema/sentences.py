"""Descriptions of types and attributes, for comments in generated code."""

from collections.abc import Iterator, Mapping
from typing import Any

from server.schema.model import ATTRIBUTE_TYPES, Attribute, Type

_RELATIONS: Mapping[str, str] = {
    "oneToOne": "One `{}`.",
    "oneToMany": "Several `{}`.",
    "manyToOne": "One `{}`.",
    "manyToMany": "Several `{}`.",
    "morphToOne": "One document of any type.",
    "morphToMany": "Several documents of any types.",
    "morphOne": "The `{}` that refers to this document.",
    "morphMany": "The `{}` that refer to this document.",
}


def describe_attribute(attribute: Attribute) -> list[str]:
    return [*_kind(attribute), *_options(attribute)]


def describe_type(type_: Type) -> list[str]:
    info = type_.raw.get("info")
    written = str(info.get("description", "")) if isinstance(info, Mapping) else ""
    found = [f"{type_.display}: {written}." if written.strip() else f"{type_.display}."]
    if type_.uid.startswith("api::"):
        found.append(f"`/api/{type_.plural if type_.kind == 'collectionType' else type_.singular}`")
    return [sentence.replace("..", ".") for sentence in found]


def _kind(attribute: Attribute) -> Iterator[str]:
    if attribute.type == "relation":
        yield _RELATIONS[str(attribute.relation)].format(attribute.target)
        if attribute.derived:
            yield f"The inverse of its attribute `{attribute.mapped_by}`."
    elif attribute.type == "component":
        yield f"{'A list of' if attribute.repeatable else 'One'} `{attribute.component}`."
    elif attribute.type == "media":
        kinds = f": {', '.join(attribute.allowed_types)}" if attribute.allowed_types else ""
        yield f"{'Several files' if attribute.multiple else 'One file'} from the media library{kinds}."
    elif attribute.type == "enumeration":
        yield f"One of {', '.join(f'`{value}`' for value in attribute.enum)}."
    else:
        sentence = ATTRIBUTE_TYPES[attribute.type].description
        yield f"{sentence[0].upper()}{sentence[1:]}."


def _options(attribute: Attribute) -> Iterator[str]:
    if attribute.target_field:
        yield f"Usually derived from `{attribute.target_field}`."
    many = attribute.repeatable or attribute.type == "dynamiczone"
    yield from _bounds(attribute.min_length, attribute.max_length, " characters")
    yield from _bounds(attribute.min, attribute.max, " entries" if many else "")
    if attribute.regex:
        yield f"Matches `{attribute.regex}`."
    if attribute.has_default:
        yield f"Default: {_as_text(attribute.default)}."
    if attribute.unique or attribute.type == "uid":
        yield "Unique."
    if attribute.private:
        yield "Private: not in any response."


def _bounds(least: Any, most: Any, unit: str) -> Iterator[str]:
    if least is not None and most is not None:
        yield f"{least} to {most}{unit}."
    elif least is not None:
        yield f"At least {least}{unit}."
    elif most is not None:
        yield f"At most {most}{unit}."


def _as_text(value: Any) -> str:
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"
