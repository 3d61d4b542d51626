"""Handlers for `/presence`, the list of people who view or edit documents. The list exists only in memory."""

import re
from collections.abc import Mapping
from typing import Any

from flask import Response, request

from server.api.request import (
    actor_of,
    budgeted_json_response,
    identities_of,
    parameters,
    read_body,
    state_of,
)
from server.api.routes.handlers import Handlers
from server.auth.permissions import Actor
from server.documents.ids import to_nfc
from server.errors import NotFoundError, ValidationError
from server.events.presence import (
    ENTRY_TTL_S,
    Presence,
    PresenceTable,
    by_document,
    is_visible,
    is_visible_field,
    other_viewers_json,
    types_with_presence,
)
from server.schema.model import Type
from server.schema.spelling import suggestion
from server.site.site import State

KEYS = ("type", "documentId", "locale", "field")
PARAMETERS = ("type", "documentId")
_CLIENT = re.compile(r"[A-Za-z0-9_-]{1,64}")
_MAX_QUOTED_CHARS = 100  # Longer names are truncated in error messages.


def bind(handles: Handlers, table: PresenceTable) -> None:
    """Register the handlers."""

    def attend() -> tuple[Actor, Mapping[str, Type]]:
        actor = actor_of(request)
        return actor, types_with_presence(actor, state_of(request).schema)

    @handles("findPresence")
    def listed() -> Response:
        actor, types = attend()
        name, document_id = _read_filter(parameters(request), types)
        state, there = state_of(request), by_document(table.all())
        told = [
            other_viewers_json(document, present, types[document[0]], actor, state.schema)
            for document, present in there.items()
            if document[0] in types and name in ("", document[0]) and document_id in ("", document[1])
            if is_visible(state.snapshot, types[document[0]], document[1], actor)
        ]
        data = [document for document in told if document["people"]]
        return budgeted_json_response(request, {"data": data})

    @handles("putPresence")
    def put(client: str) -> Response:
        actor, types = attend()
        _require_client(client)
        state = state_of(request)
        type_, document_id, locale, field = _read_place(read_body(request), state, actor, types)
        name, kind = identities_of(request).commit_author(actor)[0], actor.name.partition(":")[0]
        table.put(client, Presence(actor.name, kind, name, type_.singular, document_id, locale, field))
        document = type_.singular, document_id
        present = by_document(table.all()).get(document, ())
        told = other_viewers_json(document, present, type_, actor, state.schema)
        meta = {"expiresIn": int(ENTRY_TTL_S)}
        return budgeted_json_response(request, {"data": told, "meta": meta})

    @handles("deletePresence")
    def delete(client: str) -> Response:
        actor, _ = attend()
        _require_client(client)
        table.remove(actor.name, client)
        return Response(status=204)


def _require_client(client: str) -> None:
    if not _CLIENT.fullmatch(client):
        raise ValidationError('The client name must consist of 1 to 64 letters, digits, "-" and "_"')


def _read_filter(params: Mapping[str, Any], types: Mapping[str, Type]) -> tuple[str, str]:
    for key in params:
        if key not in PARAMETERS:
            raise ValidationError(f'Unknown parameter "{key[:_MAX_QUOTED_CHARS]}"')
    name, document_id = (params.get(key, "") for key in PARAMETERS)
    if not isinstance(document_id, str):
        raise ValidationError('"documentId" must be a single document id')
    if name:
        _find_type(name, types)
    return str(name), document_id


def _read_place(
    body: Any, state: State, actor: Actor, types: Mapping[str, Type]
) -> tuple[Type, str, str, str | None]:
    if not isinstance(body, dict) or not isinstance(body.get("documentId"), str):
        raise ValidationError(
            'The request body must look like {"type": "article", "documentId": "night-ferry", "field": '
            '"title"}'
        )
    for key in body.keys() - set(KEYS):
        raise ValidationError(
            f'Unknown key "{str(key)[:_MAX_QUOTED_CHARS]}" in the request body; use {", ".join(KEYS)}'
        )
    type_, document_id = _find_type(body.get("type"), types), to_nfc(body["documentId"])
    locale, field = body.get("locale"), body.get("field")
    locale = state.settings.locales.default if locale is None else locale
    if locale not in state.settings.locales.available:
        raise ValidationError('"locale" must be one of the site\'s locales')
    if field is not None and not (
        isinstance(field, str) and is_visible_field(field, type_, actor, state.schema)
    ):
        raise ValidationError('"field" must be null or the path of an attribute, such as "sections.0.title"')
    if not is_visible(state.snapshot, type_, document_id, actor):
        raise NotFoundError()
    return type_, document_id, locale, field


def _find_type(name: object, types: Mapping[str, Type]) -> Type:
    if isinstance(name, str) and name in types:
        return types[name]
    shown = str(name)[:_MAX_QUOTED_CHARS]
    hint = suggestion(shown, types)
    raise ValidationError(
        f'The content type "{shown}" in "type" does not exist' + (f": {hint}" if hint else "")
    )
