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
    """Serve a stream through a hub until its client leaves. Call it on the event loop.

    A client that has left already is not counted: granian then returns an awaitable that is done, which
    takes no callback.
    """
    disconnected = protocol.client_disconnect()
    if not hasattr(disconnected, "add_done_callback"):
        client.end()
        return
    close = hub.open(stream, client)
    disconnected.add_done_callback(lambda _: close(), context=_CONTEXT)
