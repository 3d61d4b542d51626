"""The stdio transport: one message per line."""

import logging
import threading
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from server.api.entrance import Entrance
from server.api.environ import ADMITTED
from server.api.mcp.changes import EventCursor
from server.api.mcp.dispatcher import respond
from server.api.mcp.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Json,
    Message,
    RequestId,
    RpcError,
    encode,
    error_of,
    parse,
)
from server.api.mcp.protocol import INITIALIZE, LATEST_WITH_HANDSHAKE, version_of
from server.api.mcp.rest_client import RestClient
from server.api.mcp.subscription import MAX_SUBSCRIPTIONS, Subscription, WatchedResource
from server.api.serving.bodies import MAX_BODY_BYTES
from server.errors import ApiError
from server.events.database import EventDatabase

log = logging.getLogger("bifolio")

_SUBSCRIBING = ("subscriptions/listen", "resources/subscribe")
_PIECE_BYTES = 1024 * 1024


def serve(
    app: Entrance, authorization: str, database: EventDatabase, source: BinaryIO, target: BinaryIO
) -> None:
    """Respond to messages until the input ends.

    The caller has the permissions that `authorization` grants.
    """
    connection = _Connection(app, authorization, database, target)
    try:
        for line in _read_lines(source):
            connection.receive(line)
    finally:
        connection.end()


class _Connection:
    """Connection to a client, and the client's subscriptions."""

    def __init__(self, app: Entrance, authorization: str, database: EventDatabase, target: BinaryIO) -> None:
        environ = {ADMITTED: (True, ()), **({"HTTP_AUTHORIZATION": authorization} if authorization else {})}
        self._app, self._rest, self._target = app, RestClient(app, environ), target
        self._default = LATEST_WITH_HANDSHAKE
        self._changes = EventCursor(app, authorization, database)
        self._listening: dict[RequestId, Subscription] = {}
        self._subscribed: dict[str, WatchedResource] = {}  # with resources/subscribe
        # Held while a message is processed, and while notifications are sent.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def receive(self, line: bytes | None) -> None:
        """Process a message. `line` is None if the line was too long."""
        with self._lock:
            try:
                if line is None:
                    raise RpcError(INVALID_REQUEST, f"A message must not exceed {MAX_BODY_BYTES:,} bytes")
                self._process(line)
            except RpcError as error:
                self._send([error_of(error)])

    def end(self) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def _process(self, line: bytes) -> None:
        message = parse(line, self._app.site.current().settings.api.limits.values)
        if message.id is None:  # Notifications get no response, even if they are invalid.
            if message.method == "notifications/cancelled":
                self._cancel(message)
            return
        self._read_changed_files(message.id)
        settings = self._app.site.current().settings
        version = version_of(message, self._default)
        if message.method in _SUBSCRIBING:
            self._notify()  # A new subscription must not report earlier changes.
        response = respond(message, version, self._rest, settings, self._subscribed)
        if message.method == INITIALIZE:
            self._default = version
        if isinstance(response, Subscription):
            self._listen(message.id, response)
        elif response is not None:
            self._send([response])
        self._start_notifications()

    def _read_changed_files(self, id_: RequestId) -> None:
        try:
            self._app.site.refresh()
        except (ApiError, OSError) as error:
            log.warning("the site's files can't be read: %s", error)
            raise RpcError(INTERNAL_ERROR, "The site's files can't be read; try again", id_=id_) from error

    def _listen(self, id_: RequestId, subscription: Subscription) -> None:
        if id_ in self._listening:
            raise RpcError(INVALID_REQUEST, "There is a subscription with this id", id_=id_)
        if len(self._listening) >= MAX_SUBSCRIPTIONS:
            limit = f"There are {MAX_SUBSCRIPTIONS} subscriptions, which is the limit"
            raise RpcError(INVALID_REQUEST, limit, id_=id_)
        self._listening[id_] = subscription
        self._send([subscription.acknowledged()])

    def _cancel(self, message: Message) -> None:
        id_ = message.params.get("requestId")
        if isinstance(id_, int | str):
            self._listening.pop(id_, None)

    # --- notifications -------------------------------------------------------------------------

    def _start_notifications(self) -> None:
        if self._thread is None and (self._listening or self._subscribed):
            self._thread = threading.Thread(target=self._send_notifications, daemon=True)
            self._thread.start()

    def _send_notifications(self) -> None:
        while not self._ended.wait(self._changes.pause_s):
            with self._lock:
                if not (self._listening or self._subscribed):
                    continue
                try:
                    self._notify()
                except OSError:  # The client has closed its input.
                    return

    def _notify(self) -> None:
        subscriptions = [*self._listening.values(), Subscription(watched=tuple(self._subscribed.values()))]
        found = self._changes.read()
        if found is None:  # The caller's permissions have changed.
            # Only subscriptions with subscriptions/listen can be closed by a message.
            last = Subscription(watched=tuple(self._subscribed.values()))
            self._send((*(one.closed() for one in self._listening.values()), *last.everything_changed()))
            self._listening.clear()
            self._subscribed.clear()
        elif found.is_incomplete:
            self._send(message for one in subscriptions for message in one.everything_changed())
        else:
            events = found.events
            self._send(m for event in events for one in subscriptions for m in one.notifications(event))

    def _send(self, messages: Iterable[Json]) -> None:
        # One edit can cause several events, such as entry.update and entry.publish.
        for line in dict.fromkeys(map(encode, messages)):
            self._target.write(line + b"\n")
        self._target.flush()


def _read_lines(source: BinaryIO) -> Iterator[bytes | None]:
    """Yield each line that is not blank. For a line that is too long, yield None."""
    while line := source.readline(MAX_BODY_BYTES + 1):
        if len(line) > MAX_BODY_BYTES and not line.endswith(b"\n"):
            while (rest := source.readline(_PIECE_BYTES)) and not rest.endswith(b"\n"):
                pass
            yield None
        elif line.strip():
            yield line
