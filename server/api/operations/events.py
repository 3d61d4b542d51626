"""Operations of `/events` and `/presence`: what has changed, and who is at a document (docs/events.md)."""

from server.api.operations.json_schema import (
    FLAG,
    NUMBER,
    READ,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    JsonSchema,
    answer,
    body_of,
    closed,
    in_path,
    in_query,
    list_of,
)
from server.api.operations.operation import Area, Audience, Docs, Operation, Tag
from server.api.operations.permission import anyone, may_attend_any, may_read_events
from server.events.model import KINDS, SOURCES
from server.events.presence.people import attended_types
from server.events.reading import LARGEST, LIMIT, MOST, STATUSES, subjects_of

OF_EVENTS = Tag("Events", "What has changed.")
OF_PRESENCE = Tag("Presence", "Who is at which document.")

_EVENT = closed(
    {
        "seq": NUMBER,
        "event": {"enum": list(KINDS)},
        "createdAt": TIMESTAMP,
        **dict.fromkeys(("model", "uid", "documentId", "locale", "actor", "commit"), TEXT_OR_NULL),
        "status": {"enum": [*STATUSES, None]},
        "changed": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "The attributes that differ; null where that is not known.",
        },
        "source": {"enum": list(SOURCES)},
        "tags": list_of(TEXT),
        "counts": {
            "type": "object",
            "description": "How many events there would have been, by type, status and event.",
        },
    },
    optional=(
        *("model", "uid", "documentId", "locale", "actor", "commit"),
        *("status", "changed", "counts"),
    ),
)
_META = closed(
    {
        "last": {**NUMBER, "description": "Up to which event the log was read: the next `since`."},
        "more": {**FLAG, "description": "Whether there are more after it."},
        "log": {**TEXT, "description": "The log's id: another one once a log was begun anew."},
    }
)
_LISTED = "Events, oldest first. With `Accept: text/event-stream`, a stream of them that does not end."


def _events(audience: Audience) -> Docs:
    return Docs(
        "What has changed, in order",
        {200: answer(_LISTED, closed({"data": list_of(_EVENT), "meta": _META}))},
        [
            in_query(
                "since",
                {**NUMBER, "minimum": 0, "maximum": LARGEST},
                "Events after this one; without it, all that are kept.",
            ),
            in_query(
                "limit", {**NUMBER, "minimum": 1, "maximum": MOST}, f"The most events; {LIMIT} without it."
            ),
            _words("types", {"enum": subjects_of(audience.actor, audience.schema)}),
            _words("events", {"enum": list(KINDS)}),
            _words("locales", TEXT),
            _words("status", {"enum": list(STATUSES)}),
            in_query(
                "presence", {**TEXT, "pattern": "^[^:]+:.+$"}, "`article:ID`: a stream tells who is there."
            ),
        ],
        errors=(*READ, 410, 503, 507),
    )


def _words(name: str, item: JsonSchema) -> JsonSchema:
    return in_query(name, list_of(item), "Of these alone.", style="form", explode=False)


EVENTS = Area(
    "events",
    parts=("events",),
    tag=OF_EVENTS,
    asks_accounts=True,  # The log of events is where the accounts are.
    operations=(
        Operation("findEvents", "GET", "/events", may_read_events, _events),
        Operation(
            "findTagsOfAddress", "GET", "/events/tags", may_read_events,
            Docs(
                "The tags of an answer",
                {200: answer("Its tags, as `Cache-Tag` has them.", closed({"data": list_of(TEXT)}))},
                [in_query("of", TEXT, "Its path and query, `/api/…`.", required=True)],
            ),
        ),
        Operation("reloadScript", "GET", "/events/reload.js", anyone, "A script, for pages.", slash=False),
    ),
)  # fmt: skip

_FIELD: JsonSchema = {
    **TEXT_OR_NULL,
    "description": "The path of an attribute, such as `sections.0.title`; null for none.",
}
_PERSON = closed(
    {
        "kind": {"enum": ["user", "token", "owner"]},
        "name": TEXT,
        "at": list_of(closed({"locale": TEXT, "field": _FIELD})),
    }
)
_CLIENT = in_path("client", "What a client calls itself.", {**TEXT, "pattern": "^[A-Za-z0-9_-]{1,64}$"})
_HOLDS = closed({"expiresIn": {**NUMBER, "description": "Seconds for which this holds unless said again."}})


def _types(audience: Audience) -> JsonSchema:
    return {"enum": list(attended_types(audience.actor, audience.schema))}


def _people(audience: Audience) -> JsonSchema:
    return closed({"type": _types(audience), "documentId": TEXT, "people": list_of(_PERSON)})


def _presence(audience: Audience) -> Docs:
    shown = closed({"data": list_of(_people(audience))})
    return Docs(
        "Who is at which document",
        {200: answer("Documents, and who is there beside the caller.", shown)},
        [
            in_query("type", _types(audience), "Of these alone."),
            in_query("documentId", TEXT, "Of these alone."),
        ],
    )


def _attend(audience: Audience) -> Docs:
    place = closed(
        {
            "type": _types(audience),
            "documentId": TEXT,
            "locale": {**TEXT_OR_NULL, "description": "That of the site without it."},
            "field": _FIELD,
        },
        optional=("locale", "field"),
    )
    shown = closed({"data": _people(audience), "meta": _HOLDS})
    answers = {200: answer("Who else is there.", shown)}
    return Docs("Say where a client is", answers, [_CLIENT], body_of(place), (*READ, 404, 429, 503))


PRESENCE = Area(
    "presence",
    parts=("presence",),
    tag=OF_PRESENCE,
    operations=(
        Operation("findPresence", "GET", "/presence", may_attend_any, _presence),
        Operation("putPresence", "PUT", "/presence/{client}", may_attend_any, _attend, slash=False),
        Operation(
            "deletePresence", "DELETE", "/presence/{client}", may_attend_any,
            Docs(
                "Say that a client has left",
                {204: answer("It is nowhere.")}, [_CLIENT], errors=(*READ, 429),
            ),
            slash=False,
        ),
    ),
)  # fmt: skip
