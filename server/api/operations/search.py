"""The operations `/search` (docs/search.md) and `/overview`."""

from server.api.operations.json_schema import (
    COUNT,
    FLAG,
    NUMBER,
    STATUS,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    JsonSchema,
    in_query,
    list_of,
    object_of,
    response_doc,
)
from server.api.operations.operation import Area, Audience, Docs, Operation, Tag
from server.api.operations.permission import may_find_any
from server.query.qs import BOOLEANS
from server.search.question import MAX_QUESTION_CHARS

OF_SEARCH = Tag("Search", "Ranked search across all types and locales.")
_POSITIVE_INTEGER = {
    "type": "integer",
    "minimum": 1,
    "maximum": 10**9 - 1,
}  # Longer numbers are rejected.
_COUNT_OR_NULL: JsonSchema = {"type": ["integer", "null"], "minimum": 0}


def _search(audience: Audience) -> Docs:
    settings, types = audience.settings, audience.schema.content_types
    names = [type_.singular for type_ in types if audience.actor.may(type_.singular, "find")]
    syntax = 'The search: words, `"phrases"`, `field:words`, `-excluded`, `prefix*`.'
    locales, prefix = list(settings.locales.available), {"enum": [*BOOLEANS], "default": "true"}
    return Docs(
        "Search documents of all types",
        {200: response_doc("The hits, best first.", _hit_schema(names, locales))},
        [
            in_query("q", {**TEXT, "maxLength": MAX_QUESTION_CHARS}, syntax, required=True, example="tide"),
            in_query("type", list_of({"enum": names}), "Only these types.", explode=False),
            in_query("locale", {"enum": [*locales, "*"]}, "Only this locale."),
            in_query("status", STATUS, "`draft`: search drafts, if the caller is allowed to read them."),
            in_query(
                "limit",
                _POSITIVE_INTEGER,
                f"Maximum number of hits on a page, up to {settings.api.page_size.max}.",
            ),
            in_query("page", _POSITIVE_INTEGER, "Page number, from 1."),
            in_query("prefix", prefix, "Whether the last word matches as a prefix."),
        ],
    )


def _hit_schema(names: list[str], locales: list[str]) -> JsonSchema:
    marked = {**TEXT, "description": "HTML in which only `<mark>` is not escaped."}
    hit = object_of(
        {
            "id": NUMBER,
            "documentId": TEXT,
            "type": {"enum": names},
            "locale": {"enum": locales},
            "status": STATUS,
            "title": TEXT_OR_NULL,
            "href": {**TEXT, "description": "Path of the document in the API."},
            "score": {"type": "number"},
            "highlights": {"type": "object", "additionalProperties": list_of(marked)},
        }
    )
    facet = list_of(object_of({"value": TEXT, "count": COUNT}))
    meta = {
        "query": TEXT,
        "pagination": object_of(dict.fromkeys(("page", "pageSize", "pageCount", "total"), COUNT)),
        "facets": object_of({"type": facet, "locale": facet}),
        "didYouMean": TEXT_OR_NULL,
        "index": object_of({"used": FLAG, "documents": _COUNT_OR_NULL, "pending": _COUNT_OR_NULL}),
    }
    return object_of({"data": list_of(hit), "meta": object_of(meta)})


SEARCH = Area(
    "search",
    parts=("search",),
    tag=OF_SEARCH,
    takes_at=True,
    varies_by_commit=True,
    operations=(Operation("search", "GET", "/search", may_find_any, _search),),
)


def _overview(audience: Audience) -> Docs:
    settings, types = audience.settings, audience.schema.content_types
    names = [type_.singular for type_ in types if audience.actor.may(type_.singular, "find")]
    locales = list(settings.locales.available)
    entry = object_of(
        {
            "id": NUMBER,
            "documentId": TEXT,
            "type": {"enum": names},
            "locale": {"enum": locales},
            "status": STATUS,
            "title": TEXT_OR_NULL,
            "updatedAt": TIMESTAMP,
            "href": {**TEXT, "description": "Path of the document in the API."},
        }
    )
    counts = {"type": "object", "additionalProperties": COUNT, "description": "By type."}
    body = object_of({"data": list_of(entry), "meta": object_of({"counts": counts})})
    return Docs(
        "Count documents by type, and list the last changed ones",
        {
            200: response_doc(
                "The documents that were changed last, and the number of documents of each type.", body
            )
        },
        [
            in_query("type", list_of({"enum": names}), "Only these types.", explode=False),
            in_query("locale", {"enum": [*locales, "*"]}, "A locale, or `*` for all."),
            in_query("status", STATUS, "`draft`: include drafts, if the caller is allowed to read them."),
            in_query(
                "limit",
                _POSITIVE_INTEGER,
                f"Maximum number of documents to list, up to {settings.api.page_size.max}.",
            ),
        ],
    )


OVERVIEW = Area(
    "overview",
    parts=("overview",),
    tag=OF_SEARCH,
    takes_at=True,
    varies_by_commit=True,
    operations=(Operation("overview", "GET", "/overview", may_find_any, _overview),),
)
