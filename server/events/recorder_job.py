"""Background job that logs the changes that the event recorder has missed."""

from contextlib import suppress

from server.database.notices import EVENTS, Notices
from server.errors import StorageError
from server.events.recorder import Recorder
from server.jobs.job import Backoff, Job, JobContext, Timing
from server.site.site import Site


class RecordEvents(Job):
    """Job that logs the changes that the event recorder has missed.

    It runs at startup, after a failure, and after another machine has logged events.
    """

    name = "record"
    failure = "changes can't be recorded"

    def __init__(
        self, site: Site, recorder: Recorder, timing: Timing, notices: Notices | None = None
    ) -> None:
        self._site, self._recorder, self._notices, self._timing = site, recorder, notices, timing
        self.backoff = Backoff(2 * timing.record_s, timing.record_retry_s)
        self._is_due, self._recorded_at = True, 0.0

    def start(self, context: JobContext) -> None:
        def on_notice(payload: str) -> None:
            if payload.partition(" ")[2] != self._recorder.database.clone_id:
                context.wake()

        if self._notices is not None:
            self._notices.listen(EVENTS, on_notice)

    def run(self, context: JobContext) -> float:
        now = context.clock.monotonic()
        self._is_due |= context.is_woken
        if self._is_due or (self._recorder.missed and now - self._recorded_at > self._timing.record_retry_s):
            self._recorded_at = now
            with suppress(StorageError):  # the recorder will log the same error
                self._recorder.database.bounds()  # connects to a remote database before the lock is held
            self._site.record()
        self._is_due = False
        return self._timing.record_s
