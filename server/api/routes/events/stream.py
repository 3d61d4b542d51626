"""`GET /events` as a stream: which events it begins with, and whether there may be one more."""

from flask import Request, Response

from server.api.environ import STREAMS
from server.api.request import state_of
from server.auth.permissions import Actor
from server.errors import BusyError, GoneError
from server.events.database import Bounds, EventDatabase
from server.events.frames import CONTENT_TYPE, parse_id
from server.events.hub import Hub
from server.events.reading import Selection, require_kept
from server.events.stream import Stream

# nginx, and what does as it does, would wait for more before it passes on a part.
HEADERS = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
TOO_MANY = "Too many event streams are open; try again"


def wants_stream(request: Request) -> bool:
    """Whether a request asks for a stream, and not for JSON."""
    return "text/event-stream" in request.headers.get("Accept", "").lower()


def stream(
    request: Request, database: EventDatabase, actor: Actor, selection: Selection, since: int | None
) -> Response:
    """A stream of the events after the one that `Last-Event-ID` names, else after `since`, None for now.

    Raises BusyError where as many are open as may be.
    """
    hub: Hub | None = request.environ.get(STREAMS)
    if hub is not None and hub.is_full(state_of(request).settings.events_streams):
        raise BusyError(TOO_MANY)
    bounds = database.bounds()
    newest = (hub.newest if hub is not None else 0) or bounds.last
    begun = _begun(request.headers.get("Last-Event-ID", ""), newest if since is None else since, bounds)
    asked, position = request.headers.get("Authorization", ""), newest if begun is None else begun
    body = Stream(asked, actor, selection, bounds.id, position, newest, restarted=begun is None)
    response = Response(body, headers=HEADERS, direct_passthrough=True)
    response.vary.add("Accept")
    return response


def _begun(last_id: str, since: int, bounds: Bounds) -> int | None:
    """After which event a stream goes on; None where that, or what followed it, is not in the log."""
    if last_id:
        found = parse_id(last_id)
        if found is None or found[0] != bounds.id or (found[1] == 0 and bounds.first > 1):
            return None
        since = found[1]
    try:
        require_kept(bounds, since)
    except GoneError:
        return None
    return since
