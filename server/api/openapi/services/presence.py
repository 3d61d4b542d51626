"""The operations of `/presence`, for who may be told who is at documents of some types (docs/events.md)."""

from collections.abc import Iterator
from contextlib import suppress

from server.api.openapi.operations import READ, answer, closed, json_content, operation
from server.api.openapi.services.caller import TEXT, Caller
from server.api.openapi.values import JsonSchema
from server.errors import ForbiddenError
from server.events.presence.people import attended_types
from server.schema.model import Schema

PRESENCE = "Presence"
_FIELD: JsonSchema = {
    "type": ["string", "null"],
    "description": "The path of an attribute, such as `sections.0.title`; null for none.",
}
_CLIENT: JsonSchema = {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"}
_PERSON = closed(
    {
        "kind": {"enum": ["user", "token", "owner"]},
        "name": TEXT,
        "at": {"type": "array", "items": closed({"locale": TEXT, "field": _FIELD})},
    }
)


def presence_paths(caller: Caller, schema: Schema) -> Iterator[tuple[str, JsonSchema]]:
    """The paths below `/presence`."""
    with suppress(ForbiddenError):
        type_: JsonSchema = {"enum": list(attended_types(caller.actor, schema))}
        document = closed({"type": type_, "documentId": TEXT, "people": {"type": "array", "items": _PERSON}})
        place: JsonSchema = {
            "type": "object",
            "properties": {
                "type": type_,
                "documentId": TEXT,
                "locale": {"type": ["string", "null"], "description": "That of the site without it."},
                "field": _FIELD,
            },
            "required": ["type", "documentId"],
            "additionalProperties": False,
        }
        listed = operation(
            PRESENCE, "findPresence", "Who is at which document",
            {200: answer("Documents, and who is there beside the caller.",
                         closed({"data": {"type": "array", "items": document}}))},
            parameters=[_query("type", type_), _query("documentId", TEXT)], limited=caller.limited,
        )  # fmt: skip
        yield "/presence", {"get": listed}
        client = [{"name": "client", "in": "path", "required": True, "schema": _CLIENT,
                   "description": "What a client calls itself."}]  # fmt: skip
        put = operation(
            PRESENCE, "putPresence", "Say where a client is",
            {200: answer("Who else is there.", closed({"data": document, "meta": _META}))},
            parameters=client, body={"required": True, "content": json_content(place)},
            errors=(*READ, 404, 429, 503),
        )  # fmt: skip
        gone = operation(
            PRESENCE, "deletePresence", "Say that a client has left", {204: answer("It is nowhere.")},
            parameters=client, errors=(*READ, 429),
        )  # fmt: skip
        yield "/presence/{client}", {"put": put, "delete": gone}


_META = closed(
    {"expiresIn": {"type": "integer", "description": "Seconds for which this holds unless said again."}}
)


def _query(name: str, schema: JsonSchema) -> JsonSchema:
    return {"name": name, "in": "query", "schema": schema, "description": "Of these alone."}
