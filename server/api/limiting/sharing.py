"""Rate limits shared between the machines of a site: one process of each exchanges counts in a store.

A request is counted in its machine's memory, without waiting. Twice a second, the new counts are added up in
the store, and the totals of the same clients replace the local counts. A client is exchanged once its
requests have used another 1 / EXCHANGES_PER_LIMIT of the limit, so many clients with few requests do not
burden the store. While the store is unavailable, each machine counts by itself.
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
MEMORY, ENVIRONMENT = "memory", "env:"  # A setting that is not an address: this value, or this prefix.
BATCH_CLIENTS = 1000


def is_shared(settings: Settings) -> bool:
    """Whether requests are limited and several machines share the counts."""
    return bool(settings.api.rate_limit) and (_is_elsewhere(settings) or _in_accounts(settings))


def check_store(settings: Settings) -> None:
    """Raise SetupError if the store's driver is missing or the environment does not contain its address."""
    if not (settings.api.rate_limit and _is_elsewhere(settings)):
        return
    if find_spec("redis") is None:
        raise SetupError(FILE, None, "api.rate_store needs redis", "run `pip install 'bifolio[redis]'`")
    if not _url(settings.api.rate_store).startswith(("redis://", "rediss://")):
        variable = settings.api.rate_store.removeprefix(ENVIRONMENT)
        raise SetupError(FILE, None, f"api.rate_store: {variable} has no redis:// address", "set it")


class ShareCounts(Job):
    """The job that exchanges the counts of a table with a store. Requires `is_shared` settings."""

    name = "share-limits"

    def __init__(self, table: CountTable, settings: Settings, timing: Timing) -> None:
        self._table, self._settings, self._timing = table, settings, timing
        self.first_pause_s = timing.share_limits_s
        self._limit = parse(settings.api.rate_limit)
        self._store: Store | None = None
        self._is_away = False

    def start(self, context: JobContext) -> None:
        """Prepare the store without connecting to it."""
        self._store = _store(self._settings)

    def run(self, context: JobContext) -> float:
        """Exchange counts once. Returns the pause in seconds; an unavailable store is retried less often."""
        assert self._store is not None
        try:
            least = max(1, self._limit.amount // EXCHANGES_PER_LIMIT)
            exchange(self._table, self._store, least, self._limit.get_expiry())
        except Exception as error:  # Each driver has its own errors.
            self._store.close()
            reason = reason_of(error)
            if not self._is_away:
                log.error("rate limits count only the requests of this machine: %s", reason)
            self._is_away = True
            raise JobFailedError(str(reason), self._timing.share_limits_retry_s) from error
        if self._is_away:
            log.info("rate limits count the requests of all machines again")
        self._is_away = False
        return self._timing.share_limits_s

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()


def exchange(table: CountTable, store: Store, least: int, window_s: int) -> None:
    """Add the counts of clients with at least `least` unsent requests to a store, and apply its totals."""
    unsent = table.unsent(least, BATCH_CLIENTS)
    totals = store.add(unsent, window_s) if unsent else {}
    for one in unsent:
        table.told(one, *totals[one.id])


def _is_elsewhere(settings: Settings) -> bool:
    return settings.api.rate_store not in ("", MEMORY)


def _url(written: str) -> str:
    """Return the address of a store, which may be in the environment because it can contain a password."""
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
