"""Counters in shared memory that the workers increment.

The supervisor uses them to detect workers that hang.
"""

import mmap
import struct
import threading
import time

INTERVAL_S = 1.0
TIMEOUT_S = 10.0
# If more time has passed between two checks, the supervisor itself was suspended or got no processor time.
_LATE_CHECK_S = 3.0
_COUNT = struct.Struct("=Q")


class Heartbeats:
    """One counter for each worker. Workers are numbered from 1. Must be created before forking."""

    def __init__(self, workers: int, timeout_s: float = TIMEOUT_S) -> None:
        self._memory = mmap.mmap(-1, (workers + 1) * _COUNT.size)
        self._timeout_s = timeout_s
        self._seen = [0] * (workers + 1)
        self._changed_at = [0.0] * (workers + 1)
        self._checked_at = 0.0

    def start(self, number: int) -> None:
        # called in the worker's process
        threading.Thread(target=self._run, args=(number,), name="heartbeat", daemon=True).start()

    def _run(self, number: int) -> None:
        interval_s = min(INTERVAL_S, self._timeout_s / 10)
        while True:
            self._write(number, self._read(number) + 1)
            time.sleep(interval_s)

    def expect(self, number: int, now: float) -> None:
        self._seen[number], self._changed_at[number] = self._read(number), now

    def check(self, now: float) -> None:
        """Read the counters of all workers.

        If the last check was long ago, the supervisor itself was paused, so all timeouts are restarted.
        """
        is_late = now - self._checked_at > _LATE_CHECK_S
        for number, seen in enumerate(self._seen):
            count = self._read(number)
            if count != seen or is_late:
                self._seen[number], self._changed_at[number] = count, now
        self._checked_at = now

    def is_hung(self, number: int) -> bool:
        return self._checked_at - self._changed_at[number] > self._timeout_s

    def _read(self, number: int) -> int:
        return int(_COUNT.unpack_from(self._memory, number * _COUNT.size)[0])

    def _write(self, number: int, count: int) -> None:
        _COUNT.pack_into(self._memory, number * _COUNT.size, count)
