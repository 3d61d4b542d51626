"""Positions at which event streams resume after a disconnect (docs/events.md)."""

import re

from server.errors import GoneError
from server.events.database import Bounds

_ID = re.compile(r"([A-Za-z0-9_]{1,64})-([0-9]{1,15})")


def require_available(bounds: Bounds, since: int) -> None:
    """Raise GoneError if events after number `since` were deleted, or if the log ends before that number."""
    if since > bounds.last:
        message = f"The event log ends at event {bounds.last}, so {since} must be from a different log"
        raise GoneError(message, {"first": bounds.first, "last": bounds.last})
    if since and since < (bounds.first or bounds.last + 1) - 1:
        message = f"The events after {since} were deleted; fetch everything and continue from {bounds.last}"
        raise GoneError(message, {"first": bounds.first, "last": bounds.last})


def start_position(last_id: str, since: int, bounds: Bounds) -> int | None:
    """Return the number of the event after which a stream starts, or None if the stream can't resume.

    `last_id` is the id of the last event that the client received. If it is "", the stream starts after event
    number `since`.
    """
    if last_id:
        parsed = parse_event_id(last_id)
        if parsed is None or parsed[0] != bounds.id or (parsed[1] == 0 and bounds.first > 1):
            return None
        since = parsed[1]
    try:
        require_available(bounds, since)
    except GoneError:
        return None
    return since


def parse_event_id(text: str) -> tuple[str, int] | None:
    """Parse an event id into the id of the log and the number of the event.

    Return None if the id is malformed.
    """
    match = _ID.fullmatch(text.strip())
    return (match[1], int(match[2])) if match else None


def id_of(log: str, number: int) -> str:
    return f"{log}-{number}"
