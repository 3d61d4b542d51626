"""What one request may cost, counted where the work is done (docs/reliability.md).

A step is about one look at a document: to test it, to follow a relation to it, to sort it or to show it.
Whoever is about to look at some documents spends so many steps first, for a list or a chunk at a time.
"""

import math
import time
from collections.abc import Callable
from typing import Self

from server.bounded import BoundedMutex
from server.config.model import Settings
from server.errors import ClientGone, LimitError, NeedsThreadPool

MAX_LOOP_STEPS = 2000  # An event loop takes no more, since all other requests wait for it.
STEPS_PER_CLOCK_READ = 1000  # To read the clock takes a system call.
COSTLY_CPU_S = 0.05  # A request that takes more processor time waits for its turn.
MAX_WAITING_REQUESTS = 8  # Costly requests that may wait for their turn.
TURN_TIMEOUT_S = 10.0


def turns(waiting: int = MAX_WAITING_REQUESTS, longest: float = TURN_TIMEOUT_S) -> BoundedMutex:
    """The turns that the costly requests of a process take: each computes alone, while some others wait."""
    return BoundedMutex("take long", waiting, longest)


class Budget:
    """What a request may still spend: steps, processor time, bytes of its answer. Used by one thread.

    Without settings, it has no end. It is closed when the request has been answered. `values` is how many
    values the body may still have.
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
        """`waits` says whether the thread may wait for a turn, `costly` that the request is sure to need one.

        `on_loop`: an event loop computes, while others wait; it leaves what takes long to a thread.
        `gone` tells whether nobody waits for the answer any more.
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
        """Count some steps before they are taken.

        Raises LimitError, BusyError (see `BoundedMutex`), NeedsThreadPool, and ClientGone.
        """
        self._left -= steps
        if self._left < 0:
            self._renew()

    def write(self, size: int) -> None:
        """Count some bytes of the answer. Raises LimitError."""
        self._bytes -= size
        if self._bytes < 0:
            self.allow(1)

    def allow(self, size: int) -> None:
        """Raise LimitError where the answer has no room for so many bytes."""
        if size > self._bytes and self._settings is not None:
            most = f"{self._settings.api.limits.size:,} bytes"
            raise LimitError(f"The answer has more than {most}; ask for less", "size")

    def take_values(self, count: int) -> None:
        """Count some values of the body. Raises LimitError if it has more than `values` left."""
        self.values -= count
        if self.values < 0 and self._settings is not None:
            most = self._settings.api.limits.values
            raise LimitError(f"The body has more than {most:,} values; write less at once", "values")

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
        """Raise NeedsThreadPool if an event loop computes: what comes now takes too long for it."""
        if self._on_loop:
            raise NeedsThreadPool(long=True)

    def close(self) -> None:
        """The request is answered."""
        if self._taken and self._turns is not None:
            self._taken = False
            self._turns.leave()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _renew(self) -> None:
        """Grant some more steps, where there are any and there is time."""
        settings = self._settings
        if settings is None:
            return
        self.leave_loop()
        self._steps -= self._granted - self._left
        if self._steps < 0:
            most = f"{settings.api.limits.steps:,} steps"
            raise LimitError(f"The answer takes more than {most}; ask for less", "steps")
        self._granted = self._left = min(self._steps, STEPS_PER_CLOCK_READ)
        now = time.thread_time()
        if self._began is None:
            self._began = now
        if now - self._began > settings.api.limits.time.total_seconds():
            raise LimitError("The answer takes too long; ask for less", "time")
        if now - self._began > COSTLY_CPU_S or self._costly:
            self.take_turn()
        if self._gone is not None and self._gone():
            raise ClientGone


UNLIMITED = Budget()  # It has no end, so threads may share it.
