"""Keys of a schema file that nothing goes by, and that are like one which something does."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from server.errors import SetupError
from server.formats.config_file import read_config_file
from server.formats.positions import line_and_column, nearest
from server.problems import Problem
from server.schema.model import ATTRIBUTE_TYPES, RELATIONS, Type
from server.schema.spelling import certain_suggestion, suggestion

# The keys that Quire goes by, and those that schema files of Strapi have besides.
TOP = (
    "kind", "info", "options", "attributes", "pluginOptions",
    "collectionName", "uid", "modelType", "modelName", "apiName", "globalId", "config", "connection",
    "indexes", "foreignKeys",
)  # fmt: skip
INFO = ("singularName", "pluralName", "displayName", "description", "icon", "name", "mainField")
OPTIONS = (
    "draftAndPublish", "files", "format", "frontMatter", "draftWhen", "body", "otherKeys", "fileName",
    "privateAttributes", "populateCreatorFields", "reviewWorkflows", "timestamps", "increments", "comment",
)  # fmt: skip
ATTRIBUTE = (
    "type", "required", "unique", "private", "default", "min", "max", "minLength", "maxLength", "regex",
    "enum", "targetField", "relation", "target", "inversedBy", "mappedBy", "morphBy", "component",
    "components", "repeatable", "multiple", "allowedTypes", "pluginOptions", "customField", "options",
    "configurable", "writable", "visible", "searchable", "column", "columnType", "joinTable", "joinColumn",
    "useJoinTable", "morphColumn", "enumName", "conditions", "displayName", "description", "autoPopulate",
    "owner",
)  # fmt: skip
I18N = ("localized",)
_KINDS = ("collectionType", "singleType")
_LIKENESS = 0.8  # "option" is like "options", "format" is not like "timestamps"


def mistyped_key(data: Mapping[str, Any], wanted: str, known: Iterable[str]) -> str | None:
    """The key of a mapping that is meant to be one which the mapping does not have."""
    others = (key for key in data if key not in known)
    return next((key for key in others if suggestion(key, [wanted], _LIKENESS)), None)


def find_mistyped_keys(root: Path, types: Iterable[Type]) -> Iterator[Problem]:
    """A warning of each key in the files of content types and components that is like one of these tables."""
    for type_ in types:
        found = dict(_mistyped(type_.raw)) if type_.path else {}
        try:
            positions = read_config_file(root, type_.path).positions if found else {}
        except SetupError:  # It has changed since, and is read again.
            continue
        for at, hint in found.items():
            line, column = line_and_column(nearest(positions, at))
            what = f'"{".".join(at)}" is no key that counts here'
            yield Problem(type_.path, line, what, hint, "warning", column, rule="schema")


def _mistyped(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The path of each mistyped key of a schema, with a suggestion."""
    for at, known in other_keys(data):
        near = certain_suggestion(at[-1], known)
        hint = f'did you mean "{near}"?' if near else suggestion(at[-1], known, _LIKENESS)
        if hint:
            yield at, hint


def other_keys(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Iterable[str]]]:
    """The path of each key of a schema that nothing goes by, with those that something does."""
    attributes = _mapping(data, "attributes")
    places: Iterable[tuple[tuple[str, ...], Iterable[str]]] = chain(
        (((), TOP), (("info",), INFO), (("options",), OPTIONS), (("pluginOptions", "i18n"), I18N)),
        ((("attributes", name), ATTRIBUTE) for name in attributes),
        ((("attributes", name, "pluginOptions", "i18n"), I18N) for name in attributes),
    )
    for at, known in places:
        for key in _mapping(data, *at):
            if key not in known:
                yield (*at, key), known


def other_words(data: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Iterable[str]]]:
    """The path of each word of a schema that is none of the words which there are for its key, with these."""
    if isinstance(kind := data.get("kind"), str) and kind not in _KINDS:
        yield ("kind",), _KINDS
    for name in _mapping(data, "attributes"):
        for key, known in (("type", ATTRIBUTE_TYPES.keys()), ("relation", RELATIONS)):
            word = _mapping(data, "attributes", name).get(key)
            if isinstance(word, str) and word not in known:
                yield ("attributes", name, key), known


def _mapping(data: Mapping[str, Any], *at: str) -> Mapping[str, Any]:
    value: Any = data
    for key in at:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}
