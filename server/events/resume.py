"""Finds where a stream goes on after a break: after the event that the client saw last (docs/events.md)."""

import re

from server.errors import GoneError
from server.events.database import Bounds

_ID = re.compile(r"([A-Za-z0-9_]{1,64})-([0-9]{1,15})")


def require_kept(bounds: Bounds, since: int) -> None:
    """Raise GoneError where events after one are no longer kept, or are those of another log."""
    if since > bounds.last:
        what = f"The log ends at {bounds.last}; {since} is of another log, such as one that was deleted"
        raise GoneError(what, {"first": bounds.first, "last": bounds.last})
    if since and since < (bounds.first or bounds.last + 1) - 1:
        what = f"The events after {since} are no longer kept; fetch everything, then go on from {bounds.last}"
        raise GoneError(what, {"first": bounds.first, "last": bounds.last})


def start_position(last_id: str, since: int, bounds: Bounds) -> int | None:
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


def parse_id(text: str) -> tuple[str, int] | None:
    """The log and the number that an id names; None for what is no id."""
    found = _ID.fullmatch(text.strip())
    return (found[1], int(found[2])) if found else None


def id_of(log: str, number: int) -> str:
    """The id of an event: that of its log, and its number there."""
    return f"{log}-{number}"
