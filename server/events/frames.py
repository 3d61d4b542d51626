"""What is sent over an event stream: frames of `text/event-stream`, as the HTML standard has them."""

import json
import re
from collections.abc import Mapping

CONTENT_TYPE = "text/event-stream; charset=utf-8"
RETRY_MS = 2000  # after which a client that lost its stream connects again
_ID = re.compile(r"([A-Za-z0-9_]{1,64})-([0-9]{1,15})")


def id_of(log: str, number: int) -> str:
    """The id of an event: that of its log, and its number there."""
    return f"{log}-{number}"


def parse_id(text: str) -> tuple[str, int] | None:
    """The log and the number that an id names; None for what is no id."""
    found = _ID.fullmatch(text.strip())
    return (found[1], int(found[2])) if found else None


def frame(event: str, data: str, id_: str = "") -> bytes:
    """An event; its data is one line."""
    head = f"id: {id_}\n" if id_ else ""
    return f"{head}event: {event}\ndata: {data}\n\n".encode()


def notice(event: str, data: Mapping[str, object], id_: str = "") -> bytes:
    """An event about the stream itself: `welcome`, `restart`."""
    return frame(event, json.dumps(data, separators=(",", ":")), id_)


def opening(log: str, number: int, newest: int, *, restarted: bool) -> bytes:
    """What a stream begins with, that goes on after the event of a number.

    `restarted`: the id that the client has sent is of no event that the stream could go on from.
    """
    first = notice("welcome", {"last": newest}, id_of(log, number))
    again = notice("restart", {"last": newest}) if restarted else b""
    return b"retry: %d\n\n" % RETRY_MS + first + again


def goaway(reason: str, retry_ms: int) -> bytes:
    """What a stream ends with: why, and after how many milliseconds the client may connect again."""
    return b"retry: %d\n" % retry_ms + notice("goaway", {"reason": reason, "retry": retry_ms})


def heartbeat(id_: str = "") -> bytes:
    """A comment, that tells both sides that the other is there.

    `id_` is of the last event that the client has not been shown, so that it goes on after it.
    """
    return b": heartbeat\n\n" if not id_ else f": heartbeat\nid: {id_}\n\n".encode()
