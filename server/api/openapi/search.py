"""The operation of `/search`, which is about all types that the actor may find (docs/search.md)."""

from collections.abc import Iterable

from server.api.openapi.operations import answer, closed, operation
from server.api.openapi.values import JsonSchema
from server.auth.permissions import Actor
from server.config.model import Settings
from server.query.booleans import BOOLEANS
from server.schema.model import Type
from server.search.question import LONGEST

SEARCH = "Search"
_TEXT: JsonSchema = {"type": "string"}
_COUNT: JsonSchema = {"type": "integer", "minimum": 0}
_COUNT_OR_NULL: JsonSchema = {"type": ["integer", "null"], "minimum": 0}


def search_path(actor: Actor, public: Actor, types: Iterable[Type], settings: Settings) -> JsonSchema:
    """The methods of `/search`; none where the actor may find nothing."""
    types = list(types)
    names = [t.singular for t in types if actor.may(t.singular, "find")]
    if not names:
        return {}
    open_ = any(public.may(t.singular, "find") for t in types)
    found = answer("What was found, the best first.", _answered(names, settings))
    made = operation(
        SEARCH,
        "search",
        "Find documents of all types by their words",
        {200: found},
        parameters=_parameters(names, settings),
        public=open_,
        limited=bool(settings.rate_limit),
    )
    return {"get": made}


def _parameters(names: list[str], settings: Settings) -> list[JsonSchema]:
    whole = {"type": "integer", "minimum": 1, "maximum": 10**9 - 1}  # more digits are refused
    types = {"type": "array", "items": {"enum": names}}
    rows: Iterable[tuple[str, JsonSchema, str]] = (
        ("q", {**_TEXT, "maxLength": LONGEST}, 'Words, `"phrases"`, `field:words`, `-without`, `begin*`.'),
        ("type", types, "Only these types."),
        ("locale", {"enum": [*settings.locales, "*"]}, "Only this locale."),
        ("status", {"enum": ["published", "draft"]}, "What drafts say, where the caller may read them."),
        ("limit", whole, f"Hits on a page, at most {settings.max_page_size}."),
        ("page", whole, "Which page, from 1."),
        ("prefix", {"enum": [*BOOLEANS], "default": "true"}, "Whether the last word may be unfinished."),
    )
    return [
        {"name": name, "in": "query", "schema": schema, "description": text}
        | ({"required": True, "example": "tide"} if name == "q" else {})
        | ({"explode": False} if name == "type" else {})
        for name, schema, text in rows
    ]


def _answered(names: list[str], settings: Settings) -> JsonSchema:
    marked = {**_TEXT, "description": "HTML in which only `<mark>` is not escaped."}
    hit = closed(
        {
            "id": {"type": "integer"},
            "documentId": _TEXT,
            "type": {"enum": names},
            "locale": {"enum": list(settings.locales)},
            "status": {"enum": ["published", "draft"]},
            "title": {"type": ["string", "null"]},
            "href": {**_TEXT, "description": "Where the API has the document."},
            "score": {"type": "number"},
            "highlights": {"type": "object", "additionalProperties": {"type": "array", "items": marked}},
        }
    )
    facet = {"type": "array", "items": closed({"value": _TEXT, "count": _COUNT})}
    pagination = dict.fromkeys(("page", "pageSize", "pageCount", "total"), _COUNT)
    index = {"used": {"type": "boolean"}, **dict.fromkeys(("documents", "pending"), _COUNT_OR_NULL)}
    meta = {
        "query": _TEXT,
        "pagination": closed(pagination),
        "facets": closed({"type": facet, "locale": facet}),
        "didYouMean": {"type": ["string", "null"]},
        "index": closed(index),
    }
    return closed({"data": {"type": "array", "items": hit}, "meta": closed(meta)})
