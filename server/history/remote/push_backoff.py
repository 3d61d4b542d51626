"""Lets other machines push as well, where nothing else tells who is the next: who has pushed pauses then.

Who is refused has to take over first what others have pushed, so that who goes on without a pause would be
the faster one each time.
"""

import random
import time

MET_S = 60.0  # for so long it is known that others push
RUN_S = 2.0  # after so long of pushing without a pause, others are let in that may be there
IDLE_S = 0.5  # after which a push is one by itself
MOST_S = 0.5  # of a pause


class Courtesy:
    """When one process may push next. Used by one thread at a time."""

    def __init__(self) -> None:
        self._met, self._began, self._last = -MET_S, 0.0, 0.0
        self._until = 0.0

    def meet(self) -> None:
        """Another machine was faster."""
        self._met = time.monotonic()

    def pushed(self, taken: float) -> None:
        """A push was taken; it was `taken` seconds that it was prepared and made."""
        now = time.monotonic()
        if now - self._last > IDLE_S + taken:
            self._began = now - taken
        self._last = now
        if now - self._met < MET_S or now - self._began > RUN_S:
            self._began = now
            self._until = now + min(taken * random.uniform(1.0, 3.0), MOST_S)

    @property
    def left(self) -> float:
        """How many seconds are to pass before the next push."""
        return max(self._until - time.monotonic(), 0.0)
