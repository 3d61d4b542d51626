"""An event stream that was asked for, and what the server of a connection has to do for it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from server.auth.permissions import Actor
from server.events import frames
from server.events.reading import Selection


@dataclass(frozen=True, slots=True)
class Stream:
    """What a client is to get: of a selection, what it may see of the log `log_id` after `position`.

    `authorization` is the header that says who it is, from which `actor` was found; it is asked again while
    the stream is open. `sender` is who is counted to have it, by its address. A stream is the body of an
    answer; a server without a hub sends its beginning alone.
    """

    authorization: str
    actor: Actor
    selection: Selection
    log_id: str
    position: int
    newest: int
    restarted: bool = False
    sender: str = ""

    @property
    def opening(self) -> bytes:
        """The first frames."""
        return frames.opening(self.log_id, self.position, self.newest, restarted=self.restarted)

    def __iter__(self) -> Iterator[bytes]:
        yield self.opening


class Client(Protocol):
    """The connection of one stream. `name` is its address and port."""

    name: str

    def send(self, data: bytes) -> None:
        """Send some frames. It does not wait, and does not tell whether they arrive."""

    def end(self) -> None:
        """End the answer, after what was sent."""
