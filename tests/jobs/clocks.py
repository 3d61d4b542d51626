"""A clock that a test controls."""

import threading

from server.jobs.job import Clock


class ManualClock(Clock):
    """A clock that only moves if a test calls `advance` or `set_to`. Threads that wait for the clock then
    wake up.
    """

    def __init__(self, at: float = 1_000_000_000.0) -> None:
        self._at, self._now, self._waiting = at, 0.0, set[threading.Condition]()
        self._lock = threading.Lock()

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._at

    def wait(self, changed: threading.Condition, seconds: float | None) -> None:
        with self._lock:
            self._waiting.add(changed)
        changed.wait(10.0)

    def advance(self, seconds: float) -> None:
        """Move both the monotonic time and the time of day forward."""
        self._now += seconds
        self.set_to(self._at + seconds)

    def set_to(self, at: float) -> None:
        """Set only the time of day, as an administrator might do."""
        self._at = at
        with self._lock:
            waiting = list(self._waiting)
        for one in waiting:
            with one:
                one.notify_all()
