"""Limits on the cost of one request, counted as the work is done (docs/reliability.md).

A step is roughly one access to a document: to test it, follow a relation to it, sort it or render it. Code
that processes documents spends the steps in advance, for a whole list or chunk at a time.
"""

import math
import time
from collections.abc import Callable
from typing import Self

from server.bounded import BoundedMutex
from server.config.model import Settings
from server.errors import ClientGone, LimitError, NeedsThreadPool

MAX_LOOP_STEPS = 2000  # Most steps on an event loop, where all other requests wait.
STEPS_PER_CLOCK_READ = 1000  # Reading the clock is a system call.
COSTLY_CPU_S = 0.05  # A request that uses more processor time waits for its turn.
MAX_WAITING_REQUESTS = 8  # Costly requests that may wait for their turn.
TURN_TIMEOUT_S = 10.0


def turns(waiting: int = MAX_WAITING_REQUESTS, longest: float = TURN_TIMEOUT_S) -> BoundedMutex:
    """Return the mutex of a process's costly requests: one computes at a time, while some others wait."""
    return BoundedMutex("take long", waiting, longest)


class Budget:
    """Remaining steps, processor time and response bytes of one request. Used by one thread.

    Without settings, it is unlimited. It is closed when the response is complete. `values` is the number of
    values that the request's body may still have.
    """

    def __init__(
        self,
        settings: Settings | None = None,
        turns: BoundedMutex | None = None,
        *,
        waits: bool = True,
        costly: bool = False,
        on_loop: bool = False,
        gone: Callable[[], bool] | None = None,
    ) -> None:
        """Create a budget.

        `waits`: the thread may block until its turn. `costly`: the request certainly needs a turn. `on_loop`:
        the code runs on an event loop, so long work is refused with NeedsThreadPool. `gone` returns whether
        the client has disconnected.
        """
        self._settings, self._turns, self._taken = settings, turns, False
        self._waits, self._costly, self._gone, self._on_loop = waits, costly, gone, on_loop
        self._began: float | None = None
        self._steps: float = settings.api.limits.steps if settings else math.inf
        self._bytes: float = settings.api.limits.size if settings else math.inf
        self.values: float = settings.api.limits.values if settings else math.inf
        granted = MAX_LOOP_STEPS if on_loop else STEPS_PER_CLOCK_READ
        self._granted = self._left = min(self._steps, granted) if settings else math.inf

    def spend(self, steps: int) -> None:
        """Count steps before they are done.

        Raises LimitError, BusyError (see `BoundedMutex`), NeedsThreadPool and ClientGone.
        """
        self._left -= steps
        if self._left < 0:
            self._renew()

    def write(self, size: int) -> None:
        """Count bytes of the response. Raises LimitError."""
        self._bytes -= size
        if self._bytes < 0:
            self.allow(1)

    def allow(self, size: int) -> None:
        """Raise LimitError if the response has no room for `size` more bytes."""
        if size > self._bytes and self._settings is not None:
            limit = f"{self._settings.api.limits.size:,} bytes"
            raise LimitError(f"The response has more than {limit}; request less", "size")

    def take_values(self, count: int) -> None:
        """Count values of the body. Raises LimitError if it has too many."""
        self.values -= count
        if self.values < 0 and self._settings is not None:
            limit = self._settings.api.limits.values
            raise LimitError(f"The body has more than {limit:,} values; write fewer at once", "values")

    def take_turn(self) -> None:
        """Wait until no other costly request of the process runs. Raises BusyError and NeedsThreadPool."""
        if self._turns is None or self._taken:
            return
        self.leave_loop()
        if self._waits:
            self._turns.take()
        elif not self._turns.take_if_free():
            raise NeedsThreadPool(costly=True)
        self._taken = True

    def leave_loop(self) -> None:
        """Raise NeedsThreadPool on an event loop, because the next work takes too long for it."""
        if self._on_loop:
            raise NeedsThreadPool(long=True)

    def close(self) -> None:
        """Give up the turn, when the response is complete."""
        if self._taken and self._turns is not None:
            self._taken = False
            self._turns.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _renew(self) -> None:
        """Grant more steps, within the limits of steps and time."""
        settings = self._settings
        if settings is None:
            return
        self.leave_loop()
        self._steps -= self._granted - self._left
        if self._steps < 0:
            limit = f"{settings.api.limits.steps:,} steps"
            raise LimitError(f"The response needs more than {limit}; request less", "steps")
        self._granted = self._left = min(self._steps, STEPS_PER_CLOCK_READ)
        now = time.thread_time()
        if self._began is None:
            self._began = now
        if now - self._began > settings.api.limits.time.total_seconds():
            raise LimitError("The response would take too long; request less", "time")
        if now - self._began > COSTLY_CPU_S or self._costly:
            self.take_turn()
        if self._gone is not None and self._gone():
            raise ClientGone


UNLIMITED = Budget()  # Threads may share it, since it never runs out.
