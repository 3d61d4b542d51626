"""The parameters of requests: in the query, in paths, in headers.

Bracket notation goes deeper than OpenAPI's `deepObject`, which says nothing of objects in objects:
`filters[author][name][$eq]=Ann` is what a nested value means here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from server.api.commits import PATTERN
from server.api.openapi.types import TypeSchemas
from server.api.operations.json_schema import TEXT, JsonSchema, in_header, in_path, in_query, ref
from server.api.routes.write_requests import LONGEST_MESSAGE, MESSAGE
from server.config.model import Settings
from server.config.values import LOCALE
from server.documents.document import DRAFT
from server.query import qs
from server.query.parse import PUBLICATION_FILTERS, STATUSES
from server.query.qs import BOOLEANS
from server.query.sorting import ORDERS
from server.schema.model import Type

_BRANCH: JsonSchema = {"type": "string", "minLength": 1}
_MOST = 10**18 - 1  # more digits are refused
_WHOLE: JsonSchema = {"type": "integer", "minimum": -_MOST, "maximum": _MOST}


def _listed(
    name: str, item: JsonSchema, description: str, most: int | None = None, **more: Any
) -> JsonSchema:
    """A parameter that is a list of names, `most` of them at most, separated by commas."""
    listed: JsonSchema = {"type": "array", "items": item, **({"maxItems": most} if most else {})}
    return in_query(name, listed, description, style="form", explode=False, **more)


def shared_parameters(settings: Settings) -> Iterator[tuple[str, JsonSchema]]:
    """Every parameter that does not depend on a type, by its name in the document."""
    code = LOCALE.pattern
    sizes = f"{settings.page_size} by default, {settings.max_page_size} at most"
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
            "locale", {"enum": list(settings.locales)}, "One of the locales; the default one without it."
        ),
    )
    several = "One of the locales; the default one without it. `*` is every locale."
    yield "localesWritten", in_query("locale", {"enum": [*settings.locales, "*"]}, several)
    yield from _statuses()
    yield "branch", in_query("branch", _BRANCH, "The branch to write to, instead of what is served.")
    dry = (
        "`true`: nothing is written, and the answer says what would change in files. It takes `source.read`."
    )
    yield "dryRun", in_query("dryRun", {"enum": ["true", "false"]}, dry)
    yield "q", in_query("_q", TEXT, "Shows documents some text of which contains this, in any case.")
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
            "412 with `details.conflicts` where they overlap. `undo`: the answer offers in `Quire-Undo` to "
            "take the write back, by `POST /batch/undo/{id}`.",
        ),
    )
    said = "The message of the commit, where the write becomes one."
    yield "message", in_header(MESSAGE, said, maxLength=LONGEST_MESSAGE)
    yield (
        "ifNoneMatch",
        in_header("If-None-Match", "The `ETag` of an answer that is known: 304 if it still holds."),
    )
    said = "A commit that the answer has to have, by at least 7 digits of its id; 503 where it does not come."
    yield "after", in_header("Quire-After", said, pattern=PATTERN)


def _locale_sentence(settings: Settings) -> str:
    return f"One of {', '.join(settings.locales)}; {settings.default_locale} without it."


def _pagination(sizes: str, settings: Settings) -> JsonSchema:
    words: list[Any] = [*BOOLEANS]
    properties = {
        "page": {**_WHOLE, "description": "The first page is 1."},
        "pageSize": {**_WHOLE, "description": f"Documents on a page: {sizes}."},
        "start": {**_WHOLE, "description": "How many documents to leave out."},
        "limit": {**_WHOLE, "description": f"How many documents to show: {sizes}."},
        "withCount": {"enum": words, "description": "Whether to count all documents."},
    }
    by_page, by_offset = (
        {"anyOf": [{"required": [name]} for name in names]}
        for names in (("page", "pageSize"), ("start", "limit"))
    )
    one_way = {"not": {"allOf": [by_page, by_offset]}}
    apart = "" if settings.populate_with_pagination else " Not together with `populate`."
    return in_query(
        "pagination",
        {"type": "object", "properties": properties, **one_way},
        f"By page or by offset; numbers out of bounds are brought into them.{apart}",
        style="deepObject",
        explode=True,
        example={"page": 1, "pageSize": settings.page_size},
    )


# --- of one type ---------------------------------------------------------------------------------


def type_parameters(schemas: TypeSchemas, type_: Type) -> Iterator[tuple[str, JsonSchema]]:
    """The parameters of a type, by their names in the document: `Article.fields`, …."""
    name = schemas.names[type_.uid]
    columns = [a.name for a in type_.columns.values() if a.selectable]
    yield (
        f"{name}.fields",
        _listed(
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
    return _listed(
        "populate",
        {"enum": ["*", *links]},
        "Shows what these lead to; `*` is all of them, one level. Dotted names go on (`author.avatar`). In "
        "bracket notation each may have its own `fields`, `filters`, `sort` and `populate`: "
        "`populate[author][fields][0]=name`; in dynamic zones `on`: `populate[zone][on][shared.quote]=true`.",
        example=links[:2],
    )


def _sort(schemas: TypeSchemas, type_: Type, columns: list[str], example: str) -> JsonSchema:
    keys = "|".join([*columns, *(_nested(schemas, type_))])
    pattern = rf"^({keys})(:({'|'.join(ORDERS)}))?$"
    return _listed(
        "sort",
        {"type": "string", "pattern": pattern},
        "Sorts by these, each `name`, `name:asc` or `name:desc`; dotted names lead through relations.",
        example=[f"{example}:desc"],
        most=qs.SORT_KEYS,
    )


def _nested(schemas: TypeSchemas, type_: Type) -> Iterator[str]:
    """Patterns of the sort keys one level below: `author\\.(name|slug)`."""
    for link in schemas.links(type_):
        targets: Mapping[str, Type] = {t.uid: t for t in schemas.targets(link)}
        if link.type == "dynamiczone" or link.polymorphic:
            continue
        (target,) = targets.values()
        below = [a.name for a in target.columns.values() if a.selectable]
        yield rf"{link.name}\.({'|'.join(below)})"
