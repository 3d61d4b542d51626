"""Events as streams have them: read from the log, as each caller may see them, in frames."""

import json
from collections.abc import Callable
from functools import lru_cache

from server.auth.permissions import Actor
from server.events.database import EventDatabase
from server.events.frames import frame, id_of
from server.events.model import Event
from server.events.reading import Selection, require_kept
from server.events.visible import shown, visible

ENCODED = 2048  # frames that are kept, to be sent to others as well


class Source:
    """The log of events in a database. `newest` tells the number of the last event that all workers show.

    `identify` finds whom an Authorization header speaks for, and raises what `Identities.identify` does.
    """

    def __init__(
        self, database: EventDatabase, newest: Callable[[], int], identify: Callable[[str], Actor]
    ) -> None:
        self._database, self.newest, self.identify = database, newest, identify
        self._encoded = lru_cache(ENCODED)(_encoded)

    def read(self, log_id: str, position: int, limit: int) -> tuple[str, list[Event]]:
        """The id of the log, and its first events after a position of the log with an id, if it is this one.

        Raises GoneError where some of them are no longer kept, and StorageError.
        """
        bounds = self._database.bounds()
        if bounds.id != log_id:
            return bounds.id, []
        require_kept(bounds, position)
        return bounds.id, self._database.read(position, limit)

    def sent(self, log_id: str, event: Event, actor: Actor, selection: Selection) -> bytes:
        """The frame of an event, as an actor may see it; empty where it may not, or has not asked for it."""
        seen = visible(event, actor) if selection.has(event) else None
        if seen is None:
            return b""
        if seen.counts is not None or actor.may("history", "read"):
            return _encoded(log_id, seen, actor)
        return self._encoded(log_id, seen, _READER)


_READER = Actor("reader")  # stands for all who see the same of an event


def _encoded(log_id: str, event: Event, actor: Actor) -> bytes:
    data = json.dumps(shown(event, actor), ensure_ascii=False, separators=(",", ":"))
    return frame(event.kind, data, id_of(log_id, event.seq))
