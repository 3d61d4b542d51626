"""New events for a local agent's subscriptions."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from server.api.entrance import Entrance
from server.api.mcp.subscription import SELECTION
from server.auth.permissions import Actor
from server.errors import ApiError, ForbiddenError, GoneError, UnauthorizedError
from server.events.database import EventDatabase
from server.events.model import Event
from server.events.reading import visible_part
from server.events.resume import require_available

log = logging.getLogger("bifolio")

MIN_POLL_INTERVAL_S = 0.5
# Maximum share of the time spent on finding changed files, which takes longer on a large site.
MAX_POLL_SHARE = 0.05
BATCH_EVENTS = 500  # per database read
MAX_EVENTS = 2000  # If there are more, they count as missed.


@dataclass(frozen=True, slots=True)
class NewEvents:
    """New events that the caller may see. `is_incomplete` tells whether some events were missed."""

    events: Sequence[Event] = ()
    is_incomplete: bool = False


class EventCursor:
    """A position in the event log, from which new events are read."""

    def __init__(self, app: Entrance, authorization: str, database: EventDatabase) -> None:
        self._app, self._authorization, self._database = app, authorization, database
        self._log_id, self._position = "", 0
        self._actor: Actor | None = None
        self._logged = ""
        self.pause_s = MIN_POLL_INTERVAL_S

    def read(self) -> NewEvents | None:
        """Return the events since the last call, or None if the caller's permissions have changed since then.

        The first call returns no events.
        """
        began = time.monotonic()
        try:
            self._app.site.refresh()  # This also adds changes to the log, if no server is running.
            found = self._read()
            self._logged = ""
            return found
        except (UnauthorizedError, ForbiddenError):  # A token or role has been removed.
            self._log_id = ""
            return None
        except (ApiError, OSError) as error:
            self._log_once(str(error))
            return NewEvents()
        finally:
            self.pause_s = max(MIN_POLL_INTERVAL_S, (time.monotonic() - began) / MAX_POLL_SHARE)

    def _log_once(self, problem: str) -> None:
        if problem != self._logged:
            log.warning("changes can't be read: %s", problem)
        self._logged = problem

    def _read(self) -> NewEvents | None:
        state = self._app.site.current()
        actor = self._app.identities.identify(self._authorization, state.settings)
        bounds = self._database.bounds()
        log_id, position = self._log_id, self._position
        was_other, self._actor = self._actor not in (None, actor), actor
        self._log_id, self._position = bounds.id, bounds.last
        if was_other:
            self._log_id = ""
            return None
        if not log_id:
            return NewEvents()
        if log_id != bounds.id or bounds.last - position > MAX_EVENTS:
            return NewEvents(is_incomplete=True)
        try:
            require_available(bounds, position)
        except GoneError:
            return NewEvents(is_incomplete=True)
        found: list[Event] = []
        while position < bounds.last and (
            part := self._database.read(position, BATCH_EVENTS, with_public=True)
        ):
            found += part
            position = part[-1].seq
        self._position = max(position, bounds.last)
        shown = (visible_part(event, actor, state.schema) for event in found)
        return NewEvents(tuple(event for event in shown if event and SELECTION.matches(event)))
