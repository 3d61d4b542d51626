"""The routes of `/events`."""

from dataclasses import replace

from flask import Blueprint, Response, request

from server.api.environ import is_v4
from server.api.identities import Identities
from server.api.reading import Reader
from server.api.render import dumps
from server.api.request import answer, budget_of, parameters, state_of
from server.api.routes.events.reload import script, tags_of_address
from server.api.routes.events.stream import stream, wants_stream
from server.errors import ForbiddenError
from server.events.database import EventDatabase
from server.events.presence.people import attended_types
from server.events.reading import LIMIT, MOST, read_number, read_part, read_selection, subjects_of
from server.events.visible import shown
from server.schema.model import Type


def blueprint(identities: Identities, database: EventDatabase) -> Blueprint:
    """The routes of `/events`."""
    bp = Blueprint("events", __name__, url_prefix="/events")
    reload_script = script()

    @bp.get("", strict_slashes=False)
    def listed() -> Response:
        actor, schema = identities.actor(request), state_of(request).schema
        subjects, asked = subjects_of(actor, schema), parameters(request)
        selection = read_selection(asked, subjects)
        since, limit = read_number(asked, "since", 0), read_number(asked, "limit", LIMIT, MOST)
        if selection.presence and selection.presence[0] not in attended_types(actor, schema):
            raise ForbiddenError()
        if wants_stream(request):
            return stream(request, database, actor, selection, since if asked.get("since") else None)
        part = read_part(database, actor, selection, since, limit, budget_of(request).spend)
        meta = {"last": part.last, "more": part.more, "log": database.bounds().id}
        response = answer(dumps({"data": [shown(event, actor) for event in part.events], "meta": meta}))
        response.vary.add("Accept")
        return response

    @bp.get("/tags", strict_slashes=False)
    def tags() -> Response:
        state, actor = state_of(request), identities.actor(request)
        tagging = replace(state, settings=replace(state.settings, cache_tags=True))
        v4, users, budget = is_v4(request.environ, state.settings), identities.user_index, budget_of(request)

        def reader(type_: Type) -> Reader:
            return Reader(tagging, type_, actor, v4=v4, users=users, budget=budget)

        subjects = subjects_of(actor, state.schema)
        found = tags_of_address(parameters(request).get("of"), state, reader, subjects)
        return answer(dumps({"data": found}))

    @bp.get("/reload.js")
    def reload() -> Response:
        headers = {"Cache-Control": "public, no-cache"}
        return Response(reload_script, headers=headers, content_type="text/javascript; charset=utf-8")

    return bp
