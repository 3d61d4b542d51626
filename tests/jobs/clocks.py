"""A clock that a test sets."""

import threading

from server.jobs.job import Clock


class ManualClock(Clock):
    """A clock that stands still but for `advance`. Whoever waits by it sleeps until then."""

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
        """Let seconds pass."""
        self._now += seconds
        self.set_to(self._at + seconds)

    def set_to(self, at: float) -> None:
        """Set the time of day alone, as an administrator does."""
        self._at = at
        with self._lock:
            waiting = list(self._waiting)
        for one in waiting:
            with one:
                one.notify_all()
