"""OpenAPI definitions of parameters. Nested filters can't be described exactly."""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from server.api.commits import PATTERN
from server.api.openapi.types import TypeSchemas
from server.api.operations.json_schema import TEXT, JsonSchema, in_header, in_path, in_query, ref
from server.api.routes.write_requests import MAX_MESSAGE_CHARS, MESSAGE
from server.auth.permissions import Actor
from server.auth.query_permissions import narrow_query
from server.config.model import Settings
from server.config.values import LOCALE
from server.documents.constraints import option_errors
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
_MAX_INTEGER = 10**18 - 1  # Longer numbers are rejected.
_WHOLE_NUMBER: JsonSchema = {"type": "integer", "minimum": -_MAX_INTEGER, "maximum": _MAX_INTEGER}


def _list_parameter(
    name: str, item: JsonSchema, description: str, most: int | None = None, **more: Any
) -> JsonSchema:
    listed: JsonSchema = {"type": "array", "items": item, **({"maxItems": most} if most else {})}
    return in_query(name, listed, description, style="form", explode=False, **more)


def shared_parameters(settings: Settings) -> Iterator[tuple[str, JsonSchema]]:
    """Yield the name and definition of each shared parameter."""
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
            f"{_locale_sentence(settings)} `*`: all locales.",
        ),
    )
    yield (
        "localeWritten",
        in_query(
            "locale",
            {"enum": list(settings.locales.available)},
            "A locale; default: the default locale of the site.",
        ),
    )
    several = "A locale, or `*` for all; default: the default locale of the site."
    yield "localesWritten", in_query("locale", {"enum": [*settings.locales.available, "*"]}, several)
    yield from _statuses()
    yield "branch", in_query("branch", _BRANCH, "The branch to write to; default: the served branch.")
    dry_run = "`true`: write nothing, and return the files that would change."
    yield "dryRun", in_query("dryRun", {"enum": ["true", "false"]}, dry_run)
    dry_run += " Requires the permission `source.read`."
    yield "dryRunOfSource", in_query("dryRun", {"enum": ["true", "false"]}, dry_run)
    yield "q", in_query("_q", TEXT, "Only documents with a text that contains this, ignoring case.")
    yield "pagination", _pagination(sizes, settings)
    yield "documentId", in_path("documentId", "The document's id, the same in every locale.")
    yield from _headers()


def _statuses() -> Iterator[tuple[str, JsonSchema]]:
    yield (
        "status",
        in_query(
            "status",
            {"enum": list(STATUSES)},
            "`draft` or `published`. Drafts require the permission `readDraft`.",
        ),
    )
    yield (
        "statusWritten",
        in_query(
            "status", {"enum": list(STATUSES)}, "`draft`: write the draft and keep the published version."
        ),
    )
    drafted = in_query(
        "status", {"enum": [DRAFT]}, "Required: the caller may write only drafts (permission `updateDraft`)."
    )
    yield "statusOfDraft", {**drafted, "required": True}
    filters = "; ".join(f"`{name}`: {sentence}" for name, sentence in PUBLICATION_FILTERS.items())
    yield (
        "publicationFilter",
        in_query(
            "publicationFilter", {"enum": list(PUBLICATION_FILTERS)}, f"Only documents that match. {filters}."
        ),
    )
    description = (
        "`true`: add the publication status of each document to `meta`, in their order. "
        "Requires the permission `readDraft`."
    )
    yield "publicationStatus", in_query("publicationStatus", {"enum": [*BOOLEANS]}, description)


def _headers() -> Iterator[tuple[str, JsonSchema]]:
    yield (
        "ifMatch",
        in_header("If-Match", "`ETag` of the version to change; 412 if the document has another."),
    )
    yield (
        "requiredIfMatch",
        {
            **in_header("If-Match", "`ETag` of the version to change; 412 if it is outdated."),
            "required": True,
        },
    )
    yield (
        "prefer",
        in_header(
            "Prefer",
            "`merge`: if `If-Match` names an earlier version, merge the change with later ones; "
            "412 with `details.conflicts` if they overlap. `undo`: return an id in `Bifolio-Undo`; then "
            "`POST /batch/undo/{id}` undoes the write.",
        ),
    )
    said = "Commit message, if the write is committed."
    yield "message", in_header(MESSAGE, said, maxLength=MAX_MESSAGE_CHARS)
    yield (
        "ifNoneMatch",
        in_header("If-None-Match", "`ETag` of a cached response: 304 if it is still current."),
    )
    said = "At least 7 digits of a commit id: wait until the site has it; else 503."
    yield "after", in_header("Bifolio-After", said, pattern=PATTERN)


def _locale_sentence(settings: Settings) -> str:
    return f"One of {', '.join(settings.locales.available)}; default: {settings.locales.default}."


def _pagination(sizes: str, settings: Settings) -> JsonSchema:
    words: list[Any] = [*BOOLEANS]
    properties = {
        "page": {**_WHOLE_NUMBER, "description": "Page number, from 1."},
        "pageSize": {**_WHOLE_NUMBER, "description": f"Documents per page: {sizes}."},
        "start": {**_WHOLE_NUMBER, "description": "Number of documents to skip."},
        "limit": {**_WHOLE_NUMBER, "description": f"Maximum number of documents: {sizes}."},
        "withCount": {"enum": words, "description": "Whether to count all documents."},
    }
    by_page, by_offset = (
        {"anyOf": [{"required": [name]} for name in names]}
        for names in (("page", "pageSize"), ("start", "limit"))
    )
    not_both = {"not": {"allOf": [by_page, by_offset]}}
    restriction = "" if settings.api.populate_with_pagination else " Can't be combined with `populate`."
    return in_query(
        "pagination",
        {"type": "object", "properties": properties, **not_both},
        f"Either `page` and `pageSize`, or `start` and `limit`. Numbers are clamped.{restriction}",
        style="deepObject",
        explode=True,
        example={"page": 1, "pageSize": settings.api.page_size.default},
    )


# --- parameters for one type ---------------------------------------------------------------------


def type_parameters(schemas: TypeSchemas, type_: Type) -> Iterator[tuple[str, JsonSchema]]:
    """Yield the name, such as `Article.fields`, and the definition of each parameter for a content type."""
    name = schemas.names[type_.uid]
    columns = [a.name for a in type_.columns.values() if a.selectable]
    yield (
        f"{name}.fields",
        _list_parameter(
            "fields",
            {"enum": ["*", *columns]},
            "Return only these attributes, with `id` and `documentId`.",
            example=columns[:2],
        ),
    )
    links = [a.name for a in schemas.populatable(type_)] + ["localizations"] * type_.localized
    if links:
        yield f"{name}.populate", _populate(links)
    example = next((c for c in columns if c not in ("id", "documentId")), "id")
    yield f"{name}.sort", _sort(schemas, type_, columns, example)
    yield (
        f"{name}.filters",
        in_query(
            "filters",
            ref(f"{name}Filters"),
            "Conditions in bracket notation: `filters[name][$eq]=value`. They can follow relations and "
            "components: `filters[author][name][$contains]=Ann`.",
            style="deepObject",
            explode=True,
            example={example: {"$notNull": True}},
        ),
    )


def _populate(links: list[str]) -> JsonSchema:
    return _list_parameter(
        "populate",
        {"enum": ["*", *links]},
        "Relations, media and components to include; `*`: all, one level. Dots go deeper (`a.b`). With "
        "bracket notation, each accepts its own `fields`, `filters`, `sort` and `populate`: "
        "`populate[author][fields][0]=name`. Dynamic zones accept `populate[zone][on][shared.quote]=true`.",
        example=links[:2],
    )


def _sort(schemas: TypeSchemas, type_: Type, columns: list[str], example: str) -> JsonSchema:
    keys = "|".join([*columns, *(_nested_sort_keys(schemas, type_))])
    pattern = rf"^({keys})(:({'|'.join(ORDERS)}))?$"
    return _list_parameter(
        "sort",
        {"type": "string", "pattern": pattern},
        "Sort keys: `name`, `name:asc` or `name:desc`. Dotted names follow relations: `author.name`.",
        example=[f"{example}:desc"],
        most=qs.MAX_SORT_KEYS,
    )


def _nested_sort_keys(schemas: TypeSchemas, type_: Type) -> Iterator[str]:
    for link in schemas.populatable(type_):
        targets: Mapping[str, Type] = {t.uid: t for t in schemas.targets(link)}
        if link.type == "dynamiczone" or link.polymorphic:
            continue
        (target,) = targets.values()
        below = [a.name for a in target.columns.values() if a.selectable]
        yield rf"{link.name}\.({'|'.join(below)})"


# --- examples -------------------------------------------------------------------------------------

MAX_EXAMPLE_CHARS = 120  # maximum length of strings in examples
MAX_EXAMPLE_ITEMS = 2  # maximum length of lists in examples


def example_documents(state: State, public: Actor, type_: Type) -> Mapping[str, Any]:
    """Return the examples `plain`, `populated` and `input` for a content type.

    They show a document that the public may read. Without such a document, only `input` is returned, with
    invented values.
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
    query = narrow_query(query, public, state.schema)
    view = View(state.snapshot, state.settings)
    return _cut(json.loads(Renderer(view).document(document, query.selection)))


def _cut(value: Any) -> Any:
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
    found = _input(type_, _sample)
    return {} if found is None else {"input": found}


def _sample(attribute: Attribute) -> Any:
    return attribute.enum[0] if attribute.type == "enumeration" else _SAMPLES[attribute.type]


def _input(type_: Type, value_of: Callable[[Attribute], Any]) -> Any:
    found: dict[str, Any] = {}
    for attribute in type_.attributes.values():
        known = value_of if attribute.visible else _sample
        value = known(attribute) if attribute.scalar else None
        if not is_empty(value) and not option_errors(attribute, value):
            found[attribute.name] = _input_value(attribute, value)
        elif attribute.required and not attribute.derived:
            return None
    return found


def _input_value(attribute: Attribute, value: Any) -> Any:
    if attribute.type in ("biginteger", "uid"):
        return f"{value}-2" if attribute.type == "uid" else str(value)
    bound = attribute.regex or attribute.min_length or attribute.type in ("email", "enumeration")
    return value if bound else _cut(value)
