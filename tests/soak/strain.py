"""Load of the machine: time limits of a soak are longer while other programs use the processors."""

import time

WORK = 200_000
MAX_STRAIN = 20.0


def strain() -> float:
    """Return how many times longer than on a quiet machine something takes: wall time by processor time."""
    began, used = time.monotonic(), time.thread_time()
    for _ in range(5):
        sum(range(WORK))
        time.sleep(0)
    taken, computed = time.monotonic() - began, time.thread_time() - used
    return min(max(taken / max(computed, 1e-6), 1.0), MAX_STRAIN)


class Deadline:
    """The end of some seconds of a quiet machine: of a busy one, more pass until then."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._left, self._at = seconds, seconds, time.monotonic()

    def is_over(self) -> bool:
        """Return whether the time is over."""
        passed, self._at = time.monotonic() - self._at, time.monotonic()
        self._left -= passed / strain()
        return self._left < 0
