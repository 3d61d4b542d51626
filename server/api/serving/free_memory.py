"""Return of freed memory to the operating system."""

import asyncio
from collections.abc import Callable

from server.site.loading import release_free_memory

# A release takes 5 to 20 ms, so there is at most one per interval.
RELEASE_INTERVAL_S = 1.0


class MemoryRelease:
    """Release of freed memory, which runs on a thread RELEASE_INTERVAL_S seconds after it is scheduled.

    If `is_needed` returns False by then, nothing is released. Must be used on an event loop.
    """

    def __init__(self, is_needed: Callable[[], bool] = lambda: True) -> None:
        self._is_needed = is_needed
        self._is_scheduled = False

    def schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_later(RELEASE_INTERVAL_S, self._release)

    def _release(self) -> None:
        self._is_scheduled = False
        if self._is_needed():
            asyncio.get_running_loop().run_in_executor(None, release_free_memory)
