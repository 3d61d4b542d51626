"""The connection of an event stream, as granian has it."""

import contextvars
from typing import Any

from server.api.response import Header
from server.events.hub import Hub
from server.events.stream import Stream

_CONTEXT = contextvars.copy_context()  # of what is called when a client leaves; one is enough for all


class StreamClient:
    """A client that a stream is sent to; `name` is its address and port."""

    __slots__ = ("_transport", "name")

    def __init__(self, protocol: Any, status: int, headers: list[Header], name: str) -> None:
        self.name = name
        self._transport = protocol.response_stream(status, headers)

    def send(self, data: bytes) -> None:
        """Let granian send some frames."""
        if self._transport is not None:
            self._transport.send_bytes(data)

    def end(self) -> None:
        """End the answer: granian does when nobody has its transport any more."""
        self._transport = None


def begin(hub: Hub, stream: Stream, client: StreamClient, protocol: Any) -> None:
    """Let a hub serve a stream until its client has left. To be called on the event loop."""
    left = hub.open(stream, client)
    protocol.client_disconnect().add_done_callback(lambda _: left(), context=_CONTEXT)
