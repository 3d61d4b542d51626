"""Limits the requests of each client. Loaded where a site asks for it, since few do."""

import time

from limits import parse
from limits.storage import Storage
from limits.strategies import FixedWindowRateLimiter

from server.api.limiting.table import CountTable, id_of
from server.api.response import Header
from server.auth.login import network_of


class Limiter:
    """Counts the requests of each client against a rate such as `100 per minute`.

    A client is an address, or of IPv6 the network that its provider gives to one customer.
    """

    def __init__(self, rate: str, table: CountTable) -> None:
        self._limit = parse(rate)
        self._strategy = FixedWindowRateLimiter(TableStorage(table))

    def count(self, address: str) -> tuple[bool, tuple[Header, ...]]:
        """Count a request: whether it is within the limit, and the headers that say how much is left."""
        client = network_of(address)
        within = self._strategy.hit(self._limit, client)
        window = self._strategy.get_window_stats(self._limit, client)
        reset = int(window.reset_time) + 1
        return within, (
            ("X-RateLimit-Limit", str(self._limit.amount)),
            ("X-RateLimit-Remaining", str(window.remaining)),
            ("X-RateLimit-Reset", str(reset)),
            ("Retry-After", str(max(0, reset - int(time.time())))),
        )


class TableStorage(Storage):
    """A table of counts as the strategies of limits use one."""

    STORAGE_SCHEME = None

    def __init__(self, table: CountTable) -> None:
        super().__init__()
        self._table = table

    @property
    def base_exceptions(self) -> type[Exception]:
        """What goes wrong where it can't be used, which is nothing that limits knows of."""
        return OSError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count; returns how many there are in the window."""
        return self._table.add(id_of(key), expiry, amount)

    def get(self, key: str) -> int:
        """How many there are in the window."""
        return self._table.get(id_of(key))[0]

    def get_expiry(self, key: str) -> float:
        """When the window ends."""
        return self._table.get(id_of(key))[1] or time.time()

    def check(self) -> bool:
        """Whether it can be used, as memory can."""
        return True

    def reset(self) -> None:
        """Nobody asks for that."""
        raise NotImplementedError

    def clear(self, key: str) -> None:
        """Nobody asks for that."""
        raise NotImplementedError
