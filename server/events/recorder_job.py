"""The job of the recorder: it catches up after the start, and with what it could not record."""

from contextlib import suppress

from server.database.notices import EVENTS, Notices
from server.errors import StorageError
from server.events.recorder import Recorder
from server.jobs.job import Backoff, Job, JobContext, Timing
from server.site.site import Site


class RecordEvents(Job):
    """Calls the recorder if no change of the site does; other machines tell by `notices` that they have."""

    name = "record"
    failure = "what has changed could not be recorded"

    def __init__(
        self, site: Site, recorder: Recorder, timing: Timing, notices: Notices | None = None
    ) -> None:
        self._site, self._recorder, self._notices, self._timing = site, recorder, notices, timing
        self.backoff = Backoff(2 * timing.record_s, timing.record_retry_s)
        self._is_due, self._recorded_at = True, 0.0

    def start(self, context: JobContext) -> None:
        """Be woken by other machines from now on."""

        def hear(payload: str) -> None:
            if payload.partition(" ")[2] != self._recorder.database.clone:
                context.wake()

        if self._notices is not None:
            self._notices.listen(EVENTS, hear)

    def run(self, context: JobContext) -> float:
        """Record what has changed: at first, when woken, and from time to time while events are missed."""
        now = context.clock.monotonic()
        self._is_due |= context.is_woken
        if self._is_due or (self._recorder.missed and now - self._recorded_at > self._timing.record_retry_s):
            self._recorded_at = now
            with suppress(StorageError):  # which the recorder meets again, and tells of
                self._recorder.database.bounds()  # A database elsewhere is waited for here, without the lock.
            self._site.record()
        self._is_due = False
        return self._timing.record_s
