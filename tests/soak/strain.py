"""Deadlines that become later if other programs use the processors."""

import time

WORK = 200_000
MAX_STRAIN = 20.0


def strain() -> float:
    """Return the ratio of wall time to processor time for a busy loop. It is 1 if no other program is
    running.
    """
    began, used = time.monotonic(), time.thread_time()
    for _ in range(5):
        sum(range(WORK))
        time.sleep(0)
    taken, computed = time.monotonic() - began, time.thread_time() - used
    return min(max(taken / max(computed, 1e-6), 1.0), MAX_STRAIN)


class Deadline:
    """A deadline, given in seconds of an idle machine. On a busy machine, the deadline is later."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self._left, self._at = seconds, seconds, time.monotonic()

    def is_over(self) -> bool:
        passed, self._at = time.monotonic() - self._at, time.monotonic()
        self._left -= passed / strain()
        return self._left < 0
