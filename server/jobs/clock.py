"""The clock of jobs, which tests replace by one that they set."""

import threading
import time

MAX_PAUSE_S = 60.0  # of a job that is due at a time of day


class Clock:
    """Time as jobs see it. Pauses are measured on the monotonic clock, which nobody can set."""

    def monotonic(self) -> float:
        """Return seconds since some moment in the past."""
        return time.monotonic()

    def time(self) -> float:
        """Return seconds since 1970."""
        return time.time()

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        """Wait until `changed`, which the caller holds, is notified, or for some seconds (None: no limit)."""
        changed.wait(seconds)

    def pause_until(self, at: float) -> float:
        """Return the pause of a job that is due at a time of day, in seconds since 1970.

        The job may run before: a pause is at most `MAX_PAUSE_S`, so that it is late by no more if somebody
        sets the clock.
        """
        return min(max(at - self.time(), 0.0), MAX_PAUSE_S)
