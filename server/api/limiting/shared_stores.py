"""Stores in PostgreSQL and Redis that count the requests to all machines."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from limits.storage import Storage, storage_from_string

from server.api.limiting.count_table import UnsentCount

TIMEOUT_S = 1.0
SWEEP_INTERVAL_S = 60.0
# An UNLOGGED table is faster. If the database crashes, it is emptied, and counts start at zero.
_TABLE = (
    "CREATE UNLOGGED TABLE IF NOT EXISTS rate_counts"
    " (client TEXT PRIMARY KEY, count BIGINT NOT NULL, ends TIMESTAMPTZ NOT NULL)"
)
# Sorted, so that all machines lock the rows in the same order, which prevents deadlocks.
_ADD = """
INSERT INTO rate_counts AS kept (client, count, ends)
SELECT client, amount, now() + %s * interval '1 second'
FROM unnest(%s::text[], %s::bigint[]) AS given (client, amount) ORDER BY client
ON CONFLICT (client) DO UPDATE SET
    count = CASE WHEN kept.ends > now() THEN kept.count ELSE 0 END + excluded.count,
    ends = CASE WHEN kept.ends > now() THEN kept.ends ELSE excluded.ends END
RETURNING client, count, extract(epoch FROM ends - now())::float
"""
# For each client id: the number of requests in the current window, and the seconds until the window ends.
Totals = Mapping[bytes, tuple[int, float]]


class Store(Protocol):
    """Store that counts the requests to all machines. Its methods raise the database driver's exceptions."""

    def add(self, counts: Iterable[UnsentCount], window_s: int) -> Totals:
        """Add counts to the store.

        Return each client's new total, and the number of seconds until its counting period ends.
        """

    def close(self) -> None: ...


class PostgresStore:
    """Store that uses a table in the accounts database."""

    def __init__(self, postgres: Any, url: str) -> None:
        self._postgres, self._url = postgres, url
        self._connection: Any = None
        self._forget_at = 0.0

    def add(self, counts: Iterable[UnsentCount], window_s: int) -> Totals:
        if self._connection is None:
            self._connection = self._postgres.connect_to(self._url)
            self._connection.execute(_TABLE)
        if time.monotonic() > self._forget_at:
            self._connection.execute("DELETE FROM rate_counts WHERE ends <= now()")
            self._forget_at = time.monotonic() + SWEEP_INTERVAL_S
        amounts = {one.id.hex(): one.count for one in counts}
        rows = self._connection.execute(_ADD, (window_s, list(amounts), list(amounts.values())))
        return {bytes.fromhex(client): (count, left) for client, count, left in rows}

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class RedisStore:
    """Store in Redis or Valkey. If several sites use the same Redis server, each needs its own key prefix."""

    def __init__(self, url: str, prefix: str) -> None:
        options: dict[str, Any] = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
        storage = storage_from_string(url, **options)
        assert isinstance(storage, Storage)  # the synchronous implementation, not the one for asyncio
        self._storage, self._prefix = storage, prefix

    def add(self, counts: Iterable[UnsentCount], window_s: int) -> Totals:
        totals = {}
        for one in counts:
            key = f"{self._prefix}/{one.id.hex()}"
            count = self._storage.incr(key, window_s, one.count)
            totals[one.id] = count, self._storage.get_expiry(key) - time.time()
        return totals

    def close(self) -> None:
        pass  # The package `limits` reconnects automatically.
