"""The parameters of requests: in the query, in paths, in headers.

Bracket notation goes deeper than OpenAPI's `deepObject`, which says nothing of objects in objects:
`filters[author][name][$eq]=Ann` is what a nested value means here."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from server.api.commits import PATTERN
from server.api.openapi.types import TypeSchemas
from server.api.operations.json_schema import TEXT, JsonSchema, in_header, in_path, in_query, ref
from server.api.routes.write_requests import MAX_MESSAGE_CHARS, MESSAGE
from server.auth.permissions import Actor
from server.auth.query_permissions import narrow
from server.config.model import Settings
from server.config.values import LOCALE
from server.documents.constraints import broken_options
from server.documents.document import DRAFT, Document
from server.documents.values import is_empty
from server.index.find import find, find_single
from server.index.snapshot import View
from server.query import qs
from server.query.parse import PUBLICATION_FILTERS, STATUSES, read_query
from server.query.qs import BOOLEANS
from server.query.sorting import ORDERS
from server.schema.model import Attribute, Type
from server.service.render import Renderer
from server.site.site import State

_BRANCH: JsonSchema = {"type": "string", "minLength": 1}
_MAX_INTEGER = 10**18 - 1  # A number with more digits is refused.
_WHOLE_NUMBER: JsonSchema = {"type": "integer", "minimum": -_MAX_INTEGER, "maximum": _MAX_INTEGER}


def _list_parameter(
    name: str, item: JsonSchema, description: str, most: int | None = None, **more: Any
) -> JsonSchema:
    """A parameter that is a list of names, `most` of them at most, separated by commas."""
    listed: JsonSchema = {"type": "array", "items": item, **({"maxItems": most} if most else {})}
    return in_query(name, listed, description, style="form", explode=False, **more)


def shared_parameters(settings: Settings) -> Iterator[tuple[str, JsonSchema]]:
    """Every parameter that does not depend on a type, by its name in the document."""
    code = LOCALE.pattern
    sizes = f"{settings.api.page_size.default} by default, {settings.api.page_size.max} at most"
    yield (
        "locale",
        in_query("locale", {"type": "string", "pattern": f"^({code})?$"}, _locale_sentence(settings)),
    )
    yield (
        "localeOfList",
        in_query(
            "locale",
            {"type": "string", "pattern": rf"^(\*|{code})?$"},
            f"{_locale_sentence(settings)} `*` is every locale.",
        ),
    )
    yield (
        "localeWritten",
        in_query(
            "locale",
            {"enum": list(settings.locales.available)},
            "One of the locales; the default one without it.",
        ),
    )
    several = "One of the locales; the default one without it. `*` is every locale."
    yield "localesWritten", in_query("locale", {"enum": [*settings.locales.available, "*"]}, several)
    yield from _statuses()
    yield "branch", in_query("branch", _BRANCH, "The branch to write to, instead of what is served.")
    dry = (
        "`true`: nothing is written, and the answer says what would change in files. It takes `source.read`."
    )
    yield "dryRun", in_query("dryRun", {"enum": ["true", "false"]}, dry)
    yield "q", in_query("_q", TEXT, "Shows documents some text of which contains this, ignoring case.")
    yield "pagination", _pagination(sizes, settings)
    yield "documentId", in_path("documentId", "The id of the document, the same in every locale.")
    yield from _headers()


def _statuses() -> Iterator[tuple[str, JsonSchema]]:
    yield "status", in_query("status", {"enum": list(STATUSES)}, "Drafts need the permission `readDraft`.")
    yield (
        "statusWritten",
        in_query(
            "status", {"enum": list(STATUSES)}, "`draft` writes the draft and leaves what is published."
        ),
    )
    drafted = in_query("status", {"enum": [DRAFT]}, "The permission `updateDraft` is for drafts alone.")
    yield "statusOfDraft", {**drafted, "required": True}
    filters = "; ".join(f"`{name}`: {sentence}" for name, sentence in PUBLICATION_FILTERS.items())
    yield (
        "publicationFilter",
        in_query("publicationFilter", {"enum": list(PUBLICATION_FILTERS)}, f"Shows what … {filters}."),
    )
    told = (
        "`true`: `meta` has the publication status of each document, in their order. "
        "It takes the permission `readDraft`."
    )
    yield "publicationStatus", in_query("publicationStatus", {"enum": [*BOOLEANS]}, told)


def _headers() -> Iterator[tuple[str, JsonSchema]]:
    yield "ifMatch", in_header("If-Match", "The `ETag` of the version to change; 412 where there is another.")
    yield (
        "prefer",
        in_header(
            "Prefer",
            "`merge`: where `If-Match` names an earlier version, the change is merged with those made since; "
            "412 with `details.conflicts` where they overlap. `undo`: the answer offers in `Bifolio-Undo` to "
            "take the write back, by `POST /batch/undo/{id}`.",
        ),
    )
    said = "The message of the commit, where the write becomes one."
    yield "message", in_header(MESSAGE, said, maxLength=MAX_MESSAGE_CHARS)
    yield (
        "ifNoneMatch",
        in_header("If-None-Match", "The `ETag` of an answer that is known: 304 if it still holds."),
    )
    said = "A commit that the answer has to have, by at least 7 digits of its id; 503 where it does not come."
    yield "after", in_header("Bifolio-After", said, pattern=PATTERN)


def _locale_sentence(settings: Settings) -> str:
    return f"One of {', '.join(settings.locales.available)}; {settings.locales.default} without it."


def _pagination(sizes: str, settings: Settings) -> JsonSchema:
    words: list[Any] = [*BOOLEANS]
    properties = {
        "page": {**_WHOLE_NUMBER, "description": "The first page is 1."},
        "pageSize": {**_WHOLE_NUMBER, "description": f"Documents on a page: {sizes}."},
        "start": {**_WHOLE_NUMBER, "description": "How many documents to leave out."},
        "limit": {**_WHOLE_NUMBER, "description": f"How many documents to show: {sizes}."},
        "withCount": {"enum": words, "description": "Whether to count all documents."},
    }
    by_page, by_offset = (
        {"anyOf": [{"required": [name]} for name in names]}
        for names in (("page", "pageSize"), ("start", "limit"))
    )
    one_way = {"not": {"allOf": [by_page, by_offset]}}
    apart = "" if settings.api.populate_with_pagination else " Not together with `populate`."
    return in_query(
        "pagination",
        {"type": "object", "properties": properties, **one_way},
        f"By page or by offset; numbers out of bounds are brought into them.{apart}",
        style="deepObject",
        explode=True,
        example={"page": 1, "pageSize": settings.api.page_size.default},
    )


# --- of one type ---------------------------------------------------------------------------------


def type_parameters(schemas: TypeSchemas, type_: Type) -> Iterator[tuple[str, JsonSchema]]:
    """The parameters of a type, by their names in the document: `Article.fields`, …."""
    name = schemas.names[type_.uid]
    columns = [a.name for a in type_.columns.values() if a.selectable]
    yield (
        f"{name}.fields",
        _list_parameter(
            "fields",
            {"enum": ["*", *columns]},
            "Shows only these, with `id` and `documentId`.",
            example=columns[:2],
        ),
    )
    links = [a.name for a in schemas.links(type_)] + ["localizations"] * type_.localized
    if links:
        yield f"{name}.populate", _populate(links)
    example = next((c for c in columns if c not in ("id", "documentId")), "id")
    yield f"{name}.sort", _sort(schemas, type_, columns, example)
    yield (
        f"{name}.filters",
        in_query(
            "filters",
            ref(f"{name}Filters"),
            "Conditions in bracket notation: `filters[name][$eq]=value`, through what attributes lead to as "
            "well: `filters[author][name][$contains]=Ann`.",
            style="deepObject",
            explode=True,
            example={example: {"$notNull": True}},
        ),
    )


def _populate(links: list[str]) -> JsonSchema:
    return _list_parameter(
        "populate",
        {"enum": ["*", *links]},
        "Shows what these lead to; `*` is all of them, one level. Dotted names go on (`author.avatar`). In "
        "bracket notation each may have its own `fields`, `filters`, `sort` and `populate`: "
        "`populate[author][fields][0]=name`; in dynamic zones `on`: `populate[zone][on][shared.quote]=true`.",
        example=links[:2],
    )


def _sort(schemas: TypeSchemas, type_: Type, columns: list[str], example: str) -> JsonSchema:
    keys = "|".join([*columns, *(_nested_sort_keys(schemas, type_))])
    pattern = rf"^({keys})(:({'|'.join(ORDERS)}))?$"
    return _list_parameter(
        "sort",
        {"type": "string", "pattern": pattern},
        "Sorts by these, each `name`, `name:asc` or `name:desc`; dotted names lead through relations.",
        example=[f"{example}:desc"],
        most=qs.MAX_SORT_KEYS,
    )


def _nested_sort_keys(schemas: TypeSchemas, type_: Type) -> Iterator[str]:
    """Patterns of the sort keys one level below: `author\\.(name|slug)`."""
    for link in schemas.links(type_):
        targets: Mapping[str, Type] = {t.uid: t for t in schemas.targets(link)}
        if link.type == "dynamiczone" or link.polymorphic:
            continue
        (target,) = targets.values()
        below = [a.name for a in target.columns.values() if a.selectable]
        yield rf"{link.name}\.({'|'.join(below)})"


# --- examples -------------------------------------------------------------------------------------

MAX_EXAMPLE_CHARS = 120  # Of a text.
MAX_EXAMPLE_ITEMS = 2  # Of a list.


def examples_of(state: State, public: Actor, type_: Type) -> Mapping[str, Any]:
    """By name: the document `plain` and `populated`, and an `input` that would make it.

    There are only examples that the public may see, whoever asks: a document can be published for
    some and no business of others.
    """
    if not public.may(type_.singular, "find"):
        return _invent_input(type_)
    document = _first(state, type_)
    if document is None:
        return _invent_input(type_)
    found = {"plain": _example_of(state, public, document, {})}
    if any(a.populatable for a in type_.attributes.values()):
        found["populated"] = _example_of(state, public, document, {"populate": "*"})
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


def _example_of(state: State, public: Actor, document: Document, params: Mapping[str, Any]) -> Any:
    query = read_query(state.schema, state.settings, document.type, params, many=False)
    query = narrow(query, public, state.schema)
    view = View(state.snapshot, state.settings)
    return _cut(json.loads(Renderer(view).document(document, query.selection)))


def _cut(value: Any) -> Any:
    """A value with long texts and lists made short."""
    if isinstance(value, str):
        return value if len(value) <= MAX_EXAMPLE_CHARS else f"{value[: MAX_EXAMPLE_CHARS - 1]}…"
    if isinstance(value, list):
        return [_cut(item) for item in value[:MAX_EXAMPLE_ITEMS]]
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


def _invent_input(type_: Type) -> Mapping[str, Any]:
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
            found[attribute.name] = _input_value(attribute, value)
        elif attribute.required and not attribute.derived:
            return None
    return found


def _input_value(attribute: Attribute, value: Any) -> Any:
    """A value as a body has it: short where it may be, a `uid` that is still free."""
    if attribute.type in ("biginteger", "uid"):
        return f"{value}-2" if attribute.type == "uid" else str(value)
    bound = attribute.regex or attribute.min_length or attribute.type in ("email", "enumeration")
    return value if bound else _cut(value)
