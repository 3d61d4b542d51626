"""Examples: the first document of a type that anyone may see, as the API shows it, with long texts cut."""

import json
from collections.abc import Callable, Mapping
from typing import Any

from server.auth.permissions import Actor, narrow
from server.documents.constraints import broken_options
from server.documents.document import Document
from server.documents.values import is_empty
from server.index.find import find, find_single
from server.index.snapshot import View
from server.query.parse import read_query
from server.schema.model import Attribute, Type
from server.service.render import Renderer
from server.site.site import State

LONGEST = 120  # characters of a text
MOST = 2  # entries of a list


def examples_of(state: State, public: Actor, type_: Type) -> Mapping[str, Any]:
    """By name: the document `plain` and `populated`, and an `input` that would make it.

    There are only examples that the public may see, whoever asks: a document can be published for
    some and no business of others.
    """
    if not public.may(type_.singular, "find"):
        return _invented(type_)
    document = _first(state, type_)
    if document is None:
        return _invented(type_)
    found = {"plain": _shown(state, public, document, {})}
    if any(a.populatable for a in type_.attributes.values()):
        found["populated"] = _shown(state, public, document, {"populate": "*"})
    found["input"] = _input(type_, lambda a: document.get(a.name))
    return {name: example for name, example in found.items() if example is not None}


def _first(state: State, type_: Type) -> Document | None:
    settings = state.settings
    view = View(state.snapshot, settings)
    if type_.kind == "singleType":
        return find_single(view, read_query(state.schema, settings, type_, {}, many=False))
    params = {"pagination": {"pageSize": "1", "withCount": "false"}}
    query = read_query(state.schema, settings, type_, params, many=True)
    return next(iter(find(view, query).documents), None)


def _shown(state: State, public: Actor, document: Document, params: Mapping[str, Any]) -> Any:
    query = read_query(state.schema, state.settings, document.type, params, many=False)
    query = narrow(query, public, state.schema)
    view = View(state.snapshot, state.settings)
    return _cut(json.loads(Renderer(view).document(document, query.selection)))


def _cut(value: Any) -> Any:
    """A value with long texts and lists made short."""
    if isinstance(value, str):
        return value if len(value) <= LONGEST else f"{value[: LONGEST - 1]}…"
    if isinstance(value, list):
        return [_cut(item) for item in value[:MOST]]
    return {key: _cut(item) for key, item in value.items()} if isinstance(value, dict) else value


# --- bodies --------------------------------------------------------------------------------------

_SAMPLES: Mapping[str, Any] = {
    "string": "Text",
    "text": "Text",
    "richtext": "Some *Markdown*.",
    "blocks": [{"type": "paragraph", "children": [{"type": "text", "text": "Hello"}]}],
    "email": "ann@example.org",
    "password": "correct horse battery",
    "uid": "some-name",
    "date": "2024-02-29",
    "time": "10:20:30.000",
    "datetime": "2024-02-29T10:20:30.000Z",
    "timestamp": "2024-02-29T10:20:30.000Z",
    "integer": 1,
    "biginteger": "1",
    "float": 1.5,
    "decimal": 1.5,
    "boolean": True,
    "array": [],
    "json": {},
}


def _invented(type_: Type) -> Mapping[str, Any]:
    """An input made from the schema alone, where that is possible."""
    found = _input(type_, _sample)
    return {} if found is None else {"input": found}


def _sample(attribute: Attribute) -> Any:
    return attribute.enum[0] if attribute.type == "enumeration" else _SAMPLES[attribute.type]


def _input(type_: Type, value_of: Callable[[Attribute], Any]) -> Any:
    """A body of the scalar values that are good; None where something that is needed is not."""
    found: dict[str, Any] = {}
    for attribute in type_.attributes.values():
        known = value_of if attribute.visible else _sample
        value = known(attribute) if attribute.scalar else None
        if not is_empty(value) and not broken_options(attribute, value):
            found[attribute.name] = _written(attribute, value)
        elif attribute.required and not attribute.derived:
            return None
    return found


def _written(attribute: Attribute, value: Any) -> Any:
    """A value as a body has it: short where it may be, a `uid` that is still free."""
    if attribute.type in ("biginteger", "uid"):
        return f"{value}-2" if attribute.type == "uid" else str(value)
    bound = attribute.regex or attribute.min_length or attribute.type in ("email", "enumeration")
    return value if bound else _cut(value)
