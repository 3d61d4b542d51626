"""Rate limits that several machines share through a store, such as Redis.

Each machine counts requests in its own memory, so requests never wait for the store. Twice a second, one
process on each machine sends the machine's new counts to the store. The store returns the totals from all
machines, which replace the counts in memory.

A client's count is sent only if the client has used at least 1 / EXCHANGES_PER_LIMIT of its limit since its
count was last sent. Clients with few requests therefore cause no load on the store. While the store is
unavailable, each machine uses only its own counts.
"""

import logging
import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from limits import parse

from server.api.limiting.stores import PostgresStore, RedisStore, Store
from server.api.limiting.table import CountTable
from server.config.model import FILE, Settings
from server.database.address import is_postgres
from server.database.outage import reason_of
from server.errors import SetupError
from server.jobs.job import Job, JobContext, JobFailedError, Timing

log = logging.getLogger("bifolio")

EXCHANGES_PER_LIMIT = 16
# The setting `api.rate_store` is `memory`, a URL, or `env:` followed by the name of an environment variable.
MEMORY, ENVIRONMENT = "memory", "env:"
BATCH_CLIENTS = 1000


def is_shared(settings: Settings) -> bool:
    """Whether a rate limit is configured, and several machines share its counts through a store."""
    return bool(settings.api.rate_limit) and (_is_elsewhere(settings) or _in_accounts(settings))


def check_store(settings: Settings) -> None:
    """Raise SetupError if Redis is configured as the store, but the Python package for Redis is not
    installed, or if the environment variable with the store's URL is not set.
    """
    if not (settings.api.rate_limit and _is_elsewhere(settings)):
        return
    if find_spec("redis") is None:
        raise SetupError(
            FILE,
            None,
            "api.rate_store requires the Python library redis",
            "run `pip install 'bifolio[redis]'`",
        )
    if not _url(settings.api.rate_store).startswith(("redis://", "rediss://")):
        variable = settings.api.rate_store.removeprefix(ENVIRONMENT)
        what = (
            f"api.rate_store: the environment variable {variable} does not contain the URL of a Redis server"
        )
        raise SetupError(FILE, None, what, "set the variable to a URL such as redis://HOST:PORT/0")


class ShareCounts(Job):
    """Job that exchanges request counts between a machine's table and the store. It is used only if several
    machines share the rate limit (`is_shared`).
    """

    name = "share-limits"

    def __init__(self, table: CountTable, settings: Settings, timing: Timing) -> None:
        self._table, self._settings, self._timing = table, settings, timing
        self.first_pause_s = timing.share_limits_s
        self._limit = parse(settings.api.rate_limit)
        self._store: Store | None = None
        self._is_away = False

    def start(self, context: JobContext) -> None:
        """Create the store object without connecting to the store."""
        self._store = _store(self._settings)

    def run(self, context: JobContext) -> float:
        """Exchange counts once. Return the number of seconds until the next run.

        If the store is unavailable, raise JobFailedError with a longer pause before the next run.
        """
        assert self._store is not None
        try:
            least = max(1, self._limit.amount // EXCHANGES_PER_LIMIT)
            exchange(self._table, self._store, least, self._limit.get_expiry())
        except Exception as error:  # The exceptions depend on the store's driver.
            self._store.close()
            reason = reason_of(error)
            if not self._is_away:
                log.error(
                    "the store for rate limits can't be used, so each machine counts its own requests: %s",
                    reason,
                )
            self._is_away = True
            raise JobFailedError(str(reason), self._timing.share_limits_retry_s) from error
        if self._is_away:
            log.info(
                "the store for rate limits is available again, so requests to all machines are counted "
                "together"
            )
        self._is_away = False
        return self._timing.share_limits_s

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()


def exchange(table: CountTable, store: Store, least: int, window_s: int) -> None:
    """Send the counts of all clients that have at least `least` unsent requests. Replace these clients' local
    counts with the totals that the store returns.
    """
    unsent = table.unsent(least, BATCH_CLIENTS)
    totals = store.add(unsent, window_s) if unsent else {}
    for one in unsent:
        table.told(one, *totals[one.id])


def _is_elsewhere(settings: Settings) -> bool:
    return settings.api.rate_store not in ("", MEMORY)


def _url(written: str) -> str:
    """Return the store's URL. `written` is the setting `api.rate_store`, which contains either the URL or the
    name of an environment variable with the URL. The variable allows the URL to contain a password.
    """
    if written.startswith(ENVIRONMENT):
        return os.environ.get(written.removeprefix(ENVIRONMENT), "")
    return written


def _in_accounts(settings: Settings) -> bool:
    return not settings.api.rate_store and is_postgres(settings.accounts)


def _store(settings: Settings) -> Store:
    if _is_elsewhere(settings):
        return RedisStore(_url(settings.api.rate_store), f"bifolio/{settings.name}")
    postgres: Any = import_module("server.database.postgres")  # docs/packages.py, LAZY
    return PostgresStore(postgres, settings.accounts)
