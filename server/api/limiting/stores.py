"""Where the machines of a site add up the requests of each client: in PostgreSQL, in Redis or Valkey."""

import time
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from limits.storage import Storage, storage_from_string

from server.api.limiting.table import Unsent

TIMEOUT_S = 1.0
SWEEP_INTERVAL_S = 60.0
# Nothing is lost that matters where the server crashes: so what is counted is in no write-ahead log.
_TABLE = (
    "CREATE UNLOGGED TABLE IF NOT EXISTS rate_counts"
    " (client TEXT PRIMARY KEY, count BIGINT NOT NULL, ends TIMESTAMPTZ NOT NULL)"
)
# In one order, so that two machines never wait for each other.
_ADD = """
INSERT INTO rate_counts AS kept (client, count, ends)
SELECT client, amount, now() + %s * interval '1 second'
FROM unnest(%s::text[], %s::bigint[]) AS given (client, amount) ORDER BY client
ON CONFLICT (client) DO UPDATE SET
    count = CASE WHEN kept.ends > now() THEN kept.count ELSE 0 END + excluded.count,
    ends = CASE WHEN kept.ends > now() THEN kept.ends ELSE excluded.ends END
RETURNING client, count, extract(epoch FROM ends - now())::float
"""
Totals = Mapping[
    bytes, tuple[int, float]
]  # by client: how many requests there are, and seconds that are left


class Store(Protocol):
    """Adds up counts. Its methods raise whatever its driver does where it can't be used."""

    def add(self, counts: Iterable[Unsent], window_s: int) -> Totals:
        """Add to the counts of some clients, whose windows may begin."""

    def close(self) -> None:
        """Let go of it; it is opened again when it is used."""


class PostgresStore:
    """A table in the database of the accounts, which is written once for many clients."""

    def __init__(self, postgres: Any, url: str) -> None:
        """`postgres` is the module server.database.postgres."""
        self._postgres, self._url = postgres, url
        self._connection: Any = None
        self._forget_at = 0.0

    def add(self, counts: Iterable[Unsent], window_s: int) -> Totals:
        """Add to the counts of some clients. Raises psycopg.Error."""
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
        """Close the connection."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class RedisStore:
    """Redis or Valkey, as the library limits uses them; `prefix` tells the site from others."""

    def __init__(self, url: str, prefix: str) -> None:
        options: dict[str, Any] = {"socket_timeout": TIMEOUT_S, "socket_connect_timeout": TIMEOUT_S}
        storage = storage_from_string(url, **options)
        assert isinstance(storage, Storage)  # and not one of asyncio
        self._storage, self._prefix = storage, prefix

    def add(self, counts: Iterable[Unsent], window_s: int) -> Totals:
        """Add to the counts of some clients. Raises redis.RedisError."""
        totals = {}
        for one in counts:
            key = f"{self._prefix}/{one.id.hex()}"
            count = self._storage.incr(key, window_s, one.count)
            totals[one.id] = count, self._storage.get_expiry(key) - time.time()
        return totals

    def close(self) -> None:
        """Its connections are made anew by themselves."""
