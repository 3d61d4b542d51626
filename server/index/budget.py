"""Limits on the cost of one request (docs/reliability.md). One step is about one access to a document."""

import math
import time
from collections.abc import Callable
from typing import Self

from server.bounded import BoundedMutex
from server.config.model import Settings
from server.errors import ClientGone, LimitError, NeedsThreadPool

MAX_LOOP_STEPS = 2000  # limit on an event loop, where a request blocks all other requests
STEPS_PER_CLOCK_READ = 1000  # Reading the clock after every step would be slow.
COSTLY_CPU_S = 0.05  # A request that uses more CPU time needs the mutex for costly requests.
MAX_WAITING_REQUESTS = 8  # queue length of the mutex for costly requests
# A write can use this many times the CPU time of a read, because changing 1,000 large files takes seconds.
WRITE_TIME_FACTOR = 4
LARGE_BYTES = 1024 * 1024  # A larger response needs the mutex for large responses.
MAX_WAITING_LARGE = 64  # queue length of the mutex for large responses
TURN_TIMEOUT_S = 10.0


def turns(max_waiting: int = MAX_WAITING_REQUESTS, timeout_s: float = TURN_TIMEOUT_S) -> BoundedMutex:
    return BoundedMutex("take long", max_waiting, timeout_s)


def large_responses() -> BoundedMutex:
    return BoundedMutex("have large responses", MAX_WAITING_LARGE, TURN_TIMEOUT_S)


class Budget:
    """Limits on a request's CPU time, steps, response size and number of body values. Not thread-safe."""

    def __init__(
        self,
        settings: Settings | None = None,
        turns: BoundedMutex | None = None,
        *,
        waits: bool = True,
        is_costly: bool = False,
        on_loop: bool = False,
        is_client_gone: Callable[[], bool] | None = None,
        large: BoundedMutex | None = None,
        is_write: bool = False,
        finishes: bool = False,
    ) -> None:
        """Create a budget. If `settings` is None, it has no limits.

        - `turns`, `large`: mutexes for costly requests and large responses.
        - `waits`: whether the thread may block until it acquires a mutex.
        - `is_costly`: whether to acquire `turns` at the first check of the limits.
        - `finishes`: whether to continue if the client has disconnected, as a write must.
        - `is_write`: whether the request writes. A write may take any number of steps, and more CPU time.
        """
        self._settings, self._turns, self._taken = settings, turns, False
        self._waits, self._costly, self._gone, self._on_loop = waits, is_costly, is_client_gone, on_loop
        self._began: float | None = None
        self._turn_began: float | None = None
        self._is_write, self._finishes = is_write, finishes
        self._steps: float = settings.api.limits.steps if settings and not is_write else math.inf
        self._bytes: float = settings.api.limits.size if settings else math.inf
        self._large, self._holds_large = large, False
        self._small_until = max(0.0, self._bytes - LARGE_BYTES) if settings and large else 0.0
        self._pieces: list[bytes] = []  # of the document that is being rendered
        self._counted_pieces, self._counted_bytes = 0, 0
        self.values: float = settings.api.limits.values if settings else math.inf
        granted = MAX_LOOP_STEPS if on_loop else STEPS_PER_CLOCK_READ
        self._granted = self._left = min(self._steps, granted) if settings else math.inf

    def of_write(self) -> "Budget":
        """Return a budget for preparing a write. A thread that uses it never waits for a mutex."""
        return Budget(self._settings, is_client_gone=self._gone, is_write=True)

    def spend(self, steps: int) -> None:
        """Count steps before they are taken.

        Raises LimitError if a limit is exceeded, BusyError if too many requests are waiting, NeedsThreadPool
        if the request must move to a thread, or ClientGone if the client has disconnected.
        """
        self._left -= steps
        if self._left < 0:
            self._renew()

    def check(self) -> None:
        """Check the limits before a long computation. Raises the same errors as `spend`."""
        self._renew()

    def write(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < self._small_until:
            self.allow(0)

    def count_pieces(self, pieces: list[bytes]) -> None:
        """Start counting the bytes in `pieces`, the list to which the response is appended."""
        if self._settings is not None:
            self._pieces, self._counted_pieces, self._counted_bytes = pieces, 0, 0

    def allow(self, size: int) -> None:
        """Raise LimitError if `size` further bytes would make the response too large.

        Raises BusyError or NeedsThreadPool if the mutex for large responses is needed, but can't be acquired.
        """
        if self._bytes - size < self._small_until:
            self._take_large()
        if size > self._bytes and self._settings is not None:
            limit = f"{self._settings.api.limits.size:,} bytes"
            raise LimitError(f"The response would be larger than {limit}; request less data", "size")

    def take_values(self, count: int) -> None:
        self.values -= count
        if self.values < 0 and self._settings is not None:
            limit = self._settings.api.limits.values
            raise LimitError(f"The request body has more than {limit:,} values; send fewer at once", "values")

    def take_turn(self) -> None:
        """Acquire the mutex for costly requests.

        Raises BusyError if too many requests are waiting for it, or NeedsThreadPool if this thread may not
        wait.
        """
        if self._turns is None or self._taken:
            return
        self.leave_loop()
        if self._waits:
            self._turns.acquire()
        elif not self._turns.acquire_if_free():
            raise NeedsThreadPool(costly=True)
        self._taken, self._turn_began = True, time.monotonic()

    @property
    def is_turn_over(self) -> bool:
        """Whether the request has held the mutex for costly requests longer than the limit on CPU time.

        This includes the time of child processes such as git, which the limit itself does not.
        """
        if self._settings is None or self._turn_began is None:
            return False
        return time.monotonic() - self._turn_began > self._settings.api.limits.time.total_seconds()

    def _take_large(self) -> None:
        # To avoid a deadlock, a request that holds the mutex for costly requests does not wait for this one.
        # At most two large responses can therefore be rendered at the same time.
        if self._large is None or self._taken or self._holds_large:
            return
        self.leave_loop()
        if self._waits:
            self._large.acquire()
        elif not self._large.acquire_if_free():
            raise NeedsThreadPool(costly=True)
        self._holds_large, self._small_until = True, 0.0

    def leave_loop(self) -> None:
        if self._on_loop:
            raise NeedsThreadPool(long=True)

    def close(self) -> None:
        """Release the mutexes when the response is complete, or before it continues on another thread."""
        self._pieces = []
        if self._taken and self._turns is not None:
            self._taken = False
            self._turns.release()
        if self._holds_large and self._large is not None:
            self._holds_large = False
            self._large.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _renew(self) -> None:
        settings = self._settings
        if settings is None:
            return
        self.leave_loop()
        self._steps -= self._granted - self._left
        if self._steps < 0:
            limit = f"{settings.api.limits.steps:,} steps"
            raise LimitError(f"The response would need more than {limit}; request less data", "steps")
        self._granted = self._left = min(self._steps, STEPS_PER_CLOCK_READ)
        now = time.thread_time()
        if self._began is None:
            self._began = now
        seconds = settings.api.limits.time.total_seconds()
        if self._is_write and now - self._began > WRITE_TIME_FACTOR * seconds:
            raise LimitError("This write would take too long; change less at once", "time")
        if not self._is_write and now - self._began > seconds:
            raise LimitError("The response would take too long; request less data", "time")
        if now - self._began > COSTLY_CPU_S or self._costly:
            self.take_turn()
        if self._gone is not None and not self._finishes and self._gone():
            raise ClientGone
        added = self._pieces[self._counted_pieces :]
        self._counted_pieces += len(added)
        self._counted_bytes += sum(map(len, added))
        self.allow(self._counted_bytes)


UNLIMITED = Budget()  # Threads can share it, because it has no limits.
