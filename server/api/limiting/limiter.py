"""The rate limiter and its response headers."""

import time

from limits import parse

from server.api.limiting.count_table import CountTable, client_id
from server.api.response import Header
from server.bounded import network_of


class Limiter:
    """Rate limit for each IPv4 address or IPv6 /64 network."""

    def __init__(self, rate: str, table: CountTable) -> None:
        self._limit, self._table = parse(rate), table

    def count(self, address: str) -> tuple[bool, tuple[Header, ...]]:
        client = client_id(self._limit.key_for(network_of(address)))
        made, end = self._table.add(client, self._limit.get_expiry())
        left, reset = self._limit.amount - made, int(end) + 1
        return left >= 0, (
            ("X-RateLimit-Limit", str(self._limit.amount)),
            ("X-RateLimit-Remaining", str(max(0, left))),
            ("X-RateLimit-Reset", str(reset)),
            ("Retry-After", str(max(0, reset - int(time.time())))),
        )
