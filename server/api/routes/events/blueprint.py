"""The routes of `/events`."""

from flask import Blueprint, Response, request

from server.api.identities import Identities
from server.api.render import dumps
from server.api.request import answer, budget_of, parameters, state_of
from server.api.routes.events.stream import stream, wants_stream
from server.events.database import EventDatabase
from server.events.reading import LIMIT, MOST, read_number, read_part, read_selection, subjects_of
from server.events.visible import shown


def blueprint(identities: Identities, database: EventDatabase) -> Blueprint:
    """The routes of `/events`."""
    bp = Blueprint("events", __name__, url_prefix="/events")

    @bp.get("", strict_slashes=False)
    def listed() -> Response:
        actor, schema = identities.actor(request), state_of(request).schema
        subjects, asked = subjects_of(actor, schema), parameters(request)
        selection = read_selection(asked, subjects)
        since, limit = read_number(asked, "since", 0), read_number(asked, "limit", LIMIT, MOST)
        if wants_stream(request):
            return stream(request, database, actor, selection, since if asked.get("since") else None)
        part = read_part(database, actor, selection, since, limit)
        budget_of(request).spend(len(part.events))
        meta = {"last": part.last, "more": part.more, "log": database.bounds().id}
        response = answer(dumps({"data": [shown(event, actor) for event in part.events], "meta": meta}))
        response.vary.add("Accept")
        return response

    return bp
