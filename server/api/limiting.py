"""Limits the requests of each client. Loaded where a site asks for it, since few do."""

import time

from limits import parse
from limits.storage import MemoryStorage
from limits.strategies import FixedWindowRateLimiter

from server.api.response import Header


class Limiter:
    """Counts the requests of each client (its address) against a rate such as `100 per minute`."""

    def __init__(self, rate: str) -> None:
        self._limit = parse(rate)
        self._strategy = FixedWindowRateLimiter(MemoryStorage())

    def count(self, client: str) -> tuple[bool, tuple[Header, ...]]:
        """Count a request: whether it is within the limit, and the headers that say how much is left."""
        within = self._strategy.hit(self._limit, client)
        window = self._strategy.get_window_stats(self._limit, client)
        reset = int(window.reset_time) + 1
        return within, (
            ("X-RateLimit-Limit", str(self._limit.amount)),
            ("X-RateLimit-Remaining", str(window.remaining)),
            ("X-RateLimit-Reset", str(reset)),
            ("Retry-After", str(max(0, reset - int(time.time())))),
        )
