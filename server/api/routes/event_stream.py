"""Event streams, as responses to `GET /events` and `POST /mcp`."""

from flask import Request, Response

from server.api.environ import STREAMS, is_loopback
from server.api.request import state_of
from server.auth.permissions import Actor
from server.bounded import network_of
from server.errors import BusyError
from server.events.database import EventDatabase
from server.events.hub import Hub
from server.events.reading import Selection
from server.events.resume import start_position
from server.events.stream import CONTENT_TYPE, EVENT_FRAMES, Frames, Stream

# X-Accel-Buffering disables buffering in nginx and similar proxies.
HEADERS = {"Content-Type": CONTENT_TYPE, "Cache-Control": "no-store", "X-Accel-Buffering": "no"}
TOO_MANY_MESSAGE = "Too many event streams are open; try again"
TOO_MANY_OF_CLIENT_MESSAGE = "Too many event streams are open from this address; try again"


def wants_stream(request: Request) -> bool:
    return "text/event-stream" in request.headers.get("Accept", "").lower()


def stream(
    request: Request,
    database: EventDatabase,
    actor: Actor,
    selection: Selection,
    since: int | None = None,
    frames: Frames = EVENT_FRAMES,
) -> Response:
    """Return a stream of the events after `Last-Event-ID` or, without this header, after `since`.

    If neither is given, the stream begins with the next event. Raises BusyError if too many streams are open.
    """
    hub: Hub | None = request.environ.get(STREAMS)
    settings, address = state_of(request).settings, request.remote_addr or ""
    if hub is not None and hub.is_full(settings.events.streams):
        raise BusyError(TOO_MANY_MESSAGE)
    # A loopback address may be a proxy for many clients, even if the settings name no proxies. The limit for
    # each client therefore does not apply to it.
    sender = "" if is_loopback(address) and not settings.api.trusted_proxies else network_of(address)
    if hub is not None and sender and hub.client_count(sender) >= settings.events.streams_per_client:
        raise BusyError(TOO_MANY_OF_CLIENT_MESSAGE)
    bounds = database.bounds()
    newest = (hub.newest if hub is not None else 0) or bounds.last
    last_id = request.headers.get("Last-Event-ID", "") if frames is EVENT_FRAMES else ""
    begun = start_position(last_id, newest if since is None else since, bounds)
    asked, position = request.headers.get("Authorization", ""), newest if begun is None else begun
    body = Stream(
        asked,
        actor,
        selection,
        bounds.id,
        position,
        newest,
        restarted=begun is None,
        sender=sender,
        frames=frames,
    )
    response = Response(body, headers=HEADERS, direct_passthrough=True)
    response.vary.add("Accept")
    return response
