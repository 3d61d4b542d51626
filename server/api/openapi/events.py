"""The operations of `/events`, as far as the caller may use them (docs/events.md)."""

from collections.abc import Iterator
from contextlib import suppress

from server.api.openapi.operations import READ, answer, closed, operation
from server.api.openapi.values import JsonSchema
from server.auth.permissions import Actor, may_find
from server.errors import ForbiddenError
from server.events.model import KINDS, SOURCES
from server.events.reading import LARGEST, LIMIT, MOST, STATUSES, subjects_of
from server.schema.model import UPLOAD, Schema

EVENTS = "Events"
_TEXT: JsonSchema = {"type": "string"}
_TEXT_OR_NULL: JsonSchema = {"type": ["string", "null"]}
_NUMBER: JsonSchema = {"type": "integer"}
_COUNTS: JsonSchema = {
    "type": "object",
    "description": "How many events there would have been, by type, status and event.",
}
_EVENT: JsonSchema = {
    "type": "object",
    "properties": {
        "seq": _NUMBER,
        "event": {"enum": list(KINDS)},
        "createdAt": {**_TEXT, "format": "date-time"},
        **dict.fromkeys(("model", "uid", "documentId", "locale", "actor", "commit"), _TEXT_OR_NULL),
        "status": {"enum": [*STATUSES, None]},
        "changed": {
            "type": ["array", "null"],
            "items": _TEXT,
            "description": "The attributes that differ; null where that is not known.",
        },
        "source": {"enum": list(SOURCES)},
        "tags": {"type": "array", "items": _TEXT},
        "counts": _COUNTS,
    },
    "required": ["seq", "event", "createdAt", "source", "tags"],
    "additionalProperties": False,
}
_META = closed(
    {
        "last": {**_NUMBER, "description": "Up to which event the log was read: the next `since`."},
        "more": {"type": "boolean", "description": "Whether there are more after it."},
        "log": {**_TEXT, "description": "The log's id: another one once a log was begun anew."},
    }
)
_ANSWER = "Events, oldest first. With `Accept: text/event-stream`, a stream of them that does not end."


def event_paths(
    actor: Actor, public: Actor, schema: Schema, *, limited: bool
) -> Iterator[tuple[str, JsonSchema]]:
    """The paths below `/events`, for who may find anything."""
    with suppress(ForbiddenError):
        subjects = subjects_of(actor, schema)
        listed = operation(
            EVENTS,
            "findEvents",
            "What has changed, in order",
            {200: answer(_ANSWER, closed({"data": _list(_EVENT), "meta": _META}))},
            parameters=_parameters(subjects),
            errors=(*READ, 410, 503, 507),
            public=_is_open(public, schema),
            limited=limited,
        )
        yield "/events", {"get": listed}
        tags = operation(
            EVENTS,
            "findTagsOfAddress",
            "The tags of an answer",
            {200: answer("Its tags, as `Cache-Tag` has them.", closed({"data": _list(_TEXT)}))},
            parameters=[{**_query("of", _TEXT, "Its path and query, `/api/…`."), "required": True}],
            errors=READ,
            public=_is_open(public, schema),
            limited=limited,
        )
        yield "/events/tags", {"get": tags}


def _is_open(public: Actor, schema: Schema) -> bool:
    return any(may_find(public, uid) for uid in (UPLOAD, *(type_.uid for type_ in schema.content_types)))


def _parameters(subjects: list[str]) -> list[JsonSchema]:
    return [
        _query(
            "since",
            {**_NUMBER, "minimum": 0, "maximum": LARGEST},
            "Events after this one; without it, all that are kept.",
        ),
        _query("limit", {**_NUMBER, "minimum": 1, "maximum": MOST}, f"The most events; {LIMIT} without it."),
        _words("types", subjects),
        _words("events", list(KINDS)),
        _words("locales", None),
        _words("status", list(STATUSES)),
        _query("presence", {**_TEXT, "pattern": "^[^:]+:.+$"}, "`article:ID`: a stream tells who is there."),
    ]


def _words(name: str, known: list[str] | None) -> JsonSchema:
    item = _TEXT if known is None else {"enum": known}
    listed = {"type": "array", "items": item}
    return {**_query(name, listed, "Of these alone."), "style": "form", "explode": False}


def _query(name: str, schema: JsonSchema, description: str) -> JsonSchema:
    return {"name": name, "in": "query", "schema": schema, "description": description}


def _list(item: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": item}
