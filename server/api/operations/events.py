"""Operations under `/events` and `/presence` (docs/events.md)."""

from server.api.operations.json_schema import (
    FLAG,
    NUMBER,
    READ,
    TEXT,
    TEXT_OR_NULL,
    TIMESTAMP,
    JsonSchema,
    body_of,
    in_path,
    in_query,
    list_of,
    object_of,
    response_doc,
)
from server.api.operations.operation import Area, Audience, Docs, Operation, Tag
from server.api.operations.permission import anyone, may_read_events, may_see_presence
from server.events.model import KINDS, SOURCES
from server.events.presence import types_with_presence
from server.events.reading import DEFAULT_LIMIT, MAX_INTEGER, MAX_LIMIT, STATUSES, findable_subjects

OF_EVENTS = Tag("Events", "The event log: changes of documents, media files and content types.")
OF_PRESENCE = Tag("Presence", "Which clients are viewing which documents.")

_EVENT = object_of(
    {
        "seq": NUMBER,
        "event": {"enum": list(KINDS)},
        "createdAt": TIMESTAMP,
        **dict.fromkeys(("model", "uid", "documentId", "locale", "actor", "commit"), TEXT_OR_NULL),
        "status": {"enum": [*STATUSES, None]},
        "changed": {
            "type": ["array", "null"],
            "items": TEXT,
            "description": "The attributes that changed; null if unknown.",
        },
        "source": {"enum": list(SOURCES)},
        "tags": list_of(TEXT),
        "counts": {
            "type": "object",
            "description": "Number of events that this one replaces, by type, status and event.",
        },
    },
    optional=(
        *("model", "uid", "documentId", "locale", "actor", "commit"),
        *("status", "changed", "counts"),
    ),
)
_META = object_of(
    {
        "last": {**NUMBER, "description": "Number of the last event read; pass it as `since`."},
        "more": {**FLAG, "description": "Whether more events follow."},
        "log": {**TEXT, "description": "The log's id. It changes when the log is recreated."},
    }
)
_LISTED = "Events, oldest first. With `Accept: text/event-stream`, an endless stream of events."


def _events(audience: Audience) -> Docs:
    return Docs(
        "List events, or stream them",
        {200: response_doc(_LISTED, object_of({"data": list_of(_EVENT), "meta": _META}))},
        [
            in_query(
                "since",
                {**NUMBER, "minimum": 0, "maximum": MAX_INTEGER},
                "Number of an event; only later events. Default: all that are kept.",
            ),
            in_query(
                "newest",
                {**NUMBER, "minimum": 1, "maximum": MAX_INTEGER},
                "Only events among this many at the end of the log, by their numbers.",
            ),
            in_query(
                "limit",
                {**NUMBER, "minimum": 1, "maximum": MAX_LIMIT},
                f"Maximum number of events; default {DEFAULT_LIMIT}.",
            ),
            _words("types", {"enum": findable_subjects(audience.actor, audience.schema)}),
            _words("events", {"enum": list(KINDS)}),
            _words("locales", TEXT),
            _words("status", {"enum": list(STATUSES)}),
            in_query(
                "presence",
                {**TEXT, "pattern": "^[^:]+:.+$"},
                "`article:ID`: also stream the presence of this document.",
            ),
        ],
        errors=(*READ, 410, 503, 507),
    )


def _words(name: str, item: JsonSchema) -> JsonSchema:
    return in_query(name, list_of(item), f"Only events of these {name}.", style="form", explode=False)


_CHANGED = object_of(
    {
        **dict.fromkeys(("documentId", "type", "locale"), TEXT),
        "event": {"enum": list(KINDS), "description": "The last event of the document."},
        "at": TIMESTAMP,
        **dict.fromkeys(("title", "by", "href"), TEXT_OR_NULL),
    }
)
_ACTIVITY = object_of(
    {
        "data": object_of(
            {
                "drafts": {**list_of(_CHANGED), "description": "Drafts that the caller changed last."},
                "others": {**list_of(_CHANGED), "description": "What others changed after `since`."},
            }
        ),
        "meta": object_of({"last": NUMBER, "log": TEXT, "others": NUMBER}),
    }
)

EVENTS = Area(
    "events",
    parts=("events",),
    tag=OF_EVENTS,
    may_query_accounts=True,  # The event log may be in the same database as the accounts.
    operations=(
        Operation("findEvents", "GET", "/events", may_read_events, _events),
        Operation(
            "findActivity", "GET", "/events/activity", may_read_events,
            Docs(
                "List the caller's drafts, and what others changed",
                {200: response_doc("Documents by their last events, newest first.", _ACTIVITY)},
                [
                    in_query(
                        "since",
                        {**NUMBER, "minimum": 0, "maximum": MAX_INTEGER},
                        "Number of an event. Without it, `others` is empty.",
                    )
                ],
                errors=(*READ, 503, 507),
            ),
        ),
        Operation(
            "findTagsOfAddress", "GET", "/events/tags", may_read_events,
            Docs(
                "Get the cache tags of a response",
                {200: response_doc("The tags, as in `Cache-Tag`.", object_of({"data": list_of(TEXT)}))},
                [in_query("of", TEXT, "Path and query of the response, `/api/…`.", required=True)],
            ),
        ),
        Operation("reloadScript", "GET", "/events/reload.js", anyone, "A script for pages.", slash=False),
    ),
)  # fmt: skip

_FIELD: JsonSchema = {
    **TEXT_OR_NULL,
    "description": "The path of an attribute, such as `sections.0.title`; null for none.",
}
_PERSON = object_of(
    {
        "kind": {"enum": ["user", "token", "owner"]},
        "name": TEXT,
        "at": list_of(object_of({"locale": TEXT, "field": _FIELD})),
    }
)
_CLIENT = in_path("client", "A name that the client chooses.", {**TEXT, "pattern": "^[A-Za-z0-9_-]{1,64}$"})
_HOLDS = object_of({"expiresIn": {**NUMBER, "description": "Seconds until it expires; send again to renew."}})


def _types(audience: Audience) -> JsonSchema:
    return {"enum": list(types_with_presence(audience.actor, audience.schema))}


def _people(audience: Audience) -> JsonSchema:
    return object_of({"type": _types(audience), "documentId": TEXT, "people": list_of(_PERSON)})


def _presence(audience: Audience) -> Docs:
    shown = object_of({"data": list_of(_people(audience))})
    return Docs(
        "List which clients are viewing which documents",
        {200: response_doc("Documents with the other people who are viewing them.", shown)},
        [
            in_query("type", _types(audience), "Only documents of this type."),
            in_query("documentId", TEXT, "Only this document."),
        ],
    )


def _attend(audience: Audience) -> Docs:
    place = object_of(
        {
            "type": _types(audience),
            "documentId": TEXT,
            "locale": {**TEXT_OR_NULL, "description": "Default: the site's default locale."},
            "field": _FIELD,
        },
        optional=("locale", "field"),
    )
    shown = object_of({"data": _people(audience), "meta": _HOLDS})
    answers = {200: response_doc("The other people who are viewing the document.", shown)}
    return Docs(
        "Report which document a client is viewing",
        answers,
        [_CLIENT],
        body_of(place),
        (*READ, 404, 429, 503),
    )


PRESENCE = Area(
    "presence",
    parts=("presence",),
    tag=OF_PRESENCE,
    operations=(
        Operation("findPresence", "GET", "/presence", may_see_presence, _presence),
        Operation(
            "putPresence", "PUT", "/presence/{client}", may_see_presence, _attend,
            branch_only=True, slash=False,
        ),
        Operation(
            "deletePresence", "DELETE", "/presence/{client}", may_see_presence,
            Docs(
                "Remove a client's presence",
                {204: response_doc("Presence removed.")}, [_CLIENT], errors=(*READ, 429),
            ),
            branch_only=True,
            slash=False,
        ),
    ),
)  # fmt: skip
