"""Handlers for `/events`."""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote

from flask import Response, request

from server.api.environ import parse_query, response_format_of
from server.api.operations.content import parse_content_path
from server.api.request import (
    actor_of,
    answer,
    budget_of,
    budgeted_json_response,
    caller_of,
    identities_of,
    parameters,
    state_of,
)
from server.api.response import PRIVATE_REVALIDATE
from server.api.routes.event_stream import stream, wants_stream
from server.api.routes.handlers import Handlers
from server.config.model import with_values
from server.documents.ids import to_nfc
from server.errors import ForbiddenError, NotFoundError, ValidationError
from server.events.database import EventDatabase
from server.events.model import KINDS
from server.events.presence import types_with_presence
from server.events.reading import (
    DEFAULT_LIMIT,
    MAX_LIMIT,
    findable_subjects,
    parse_selection,
    read_number,
    read_page,
    shown,
)
from server.paths import UPLOADS_URL
from server.schema.model import SITE_TAG, Type, document_tag, type_tag
from server.service.activity import find_activity
from server.service.cache_tags import tags_of_file
from server.service.read import Reader
from server.service.render import dumps
from server.site.site import State


def bind(handles: Handlers, database: EventDatabase) -> None:
    """Register the handlers."""
    reload_script = script()

    @handles("findEvents")
    def listed() -> Response:
        actor, schema = actor_of(request), state_of(request).schema
        subjects, asked = findable_subjects(actor, schema), parameters(request)
        selection = parse_selection(asked, subjects)
        newest = read_number(asked, "newest", 0)
        since, limit = read_number(asked, "since", 0), read_number(asked, "limit", DEFAULT_LIMIT, MAX_LIMIT)
        if selection.presence and selection.presence[0] not in types_with_presence(actor, schema):
            raise ForbiddenError()
        if wants_stream(request):
            return stream(request, database, actor, selection, since if asked.get("since") else None)
        bounds = database.bounds()
        since = max(since, bounds.first - 1, bounds.last - newest) if newest else since
        part = read_page(database, actor, schema, selection, since, limit, budget_of(request).spend)
        meta = {"last": part.last_number, "more": part.has_more, "log": bounds.id}
        response = answer(dumps({"data": [shown(event, actor) for event in part.events], "meta": meta}))
        response.vary.add("Accept")
        return response

    @handles("findActivity")
    def activity() -> Response:
        caller, asked = caller_of(request), parameters(request)
        findable_subjects(caller.actor, caller.state.schema)
        since = read_number(asked, "since", 0) if asked.get("since") else None
        found = find_activity(database, caller, since, identities_of(request).actor_name)
        data = {"drafts": found.drafts, "others": found.others}
        meta = {"last": found.last, "log": found.log, "others": found.other_count}
        return budgeted_json_response(request, {"data": data, "meta": meta}, PRIVATE_REVALIDATE)

    @handles("findTagsOfAddress")
    def tags() -> Response:
        state, actor = state_of(request), actor_of(request)
        tagging = replace(state, settings=with_values(state.settings, {"api.cache_tags": True}))
        response_format = response_format_of(request.environ, state.settings)
        users, budget = identities_of(request).user_index, budget_of(request)

        def reader(type_: Type) -> Reader:
            return Reader(tagging, type_, actor, response_format=response_format, users=users, budget=budget)

        subjects = findable_subjects(actor, state.schema)
        found = cache_tags_of_url(parameters(request).get("of"), state, reader, subjects)
        return answer(dumps({"data": found}))

    @handles("reloadScript")
    def reload() -> Response:
        headers = {"Cache-Control": "public, no-cache"}
        return Response(reload_script, headers=headers, content_type="text/javascript; charset=utf-8")


_SOURCE = Path(__file__).parents[1] / "templates" / "reload.js"
_COMMENTS_AND_INDENTATION = re.compile(r"^\s*(//.*)?\n?", re.MULTILINE)


def script() -> str:
    text = _COMMENTS_AND_INDENTATION.sub("", _SOURCE.read_text(encoding="utf-8"))
    return text.replace("KINDS", json.dumps([*KINDS, "restart"], separators=(",", ":")))


def cache_tags_of_url(
    url: object, state: State, reader_of: Callable[[Type], Reader], visible_subjects: Iterable[str]
) -> list[str]:
    """Return the cache tags of the response to a request for `url`, which is a path with an optional query.

    Raises ValidationError if `url` is not a string, and any error that reading the content raises.
    """
    if not isinstance(url, str):
        raise ValidationError(
            '"of" must be the path and query of a request, such as "/api/articles?populate=author"'
        )
    path, _, query = url.partition("?")
    path = unquote(path)
    content = parse_content_path(path, state.schema)
    if content is not None:
        return _tags_of_content(*content, query, reader_of)
    if path.startswith(UPLOADS_URL):
        return [SITE_TAG, *tags_of_file(state.snapshot, to_nfc(path.removeprefix(UPLOADS_URL)))]
    about_all = path.startswith(("/search", "/api/upload"))
    return [SITE_TAG, *(visible_subjects if about_all else ())]


def _tags_of_content(
    type_: Type, document_id: str, query: str, reader: Callable[[Type], Reader]
) -> list[str]:
    try:
        read = reader(type_).get(parse_query(query), to_nfc(document_id) or None)
    except NotFoundError:
        tag = document_tag(type_.uid, to_nfc(document_id)) if document_id else type_tag(type_.uid)
        return [SITE_TAG, tag]
    return read.cache_tags.split(", ")
