"""Has all machines of a site count the requests of a client together: one process of each tells the others.

A request is counted in the memory of its machine, and waits for nothing. Twice a second, what was counted is
added up in a store, and what there is of the same clients at all machines is taken over. A machine tells of a
client once it has used up 1 / EXCHANGES_PER_LIMIT of the limit more, so many clients with few requests cost
the store nothing. While the store is away, each machine counts for itself.
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
MEMORY, ENVIRONMENT = "memory", "env:"  # what the setting may be, or begin with, beside an address
BATCH_CLIENTS = 1000


def is_shared(settings: Settings) -> bool:
    """Whether requests are limited, and counted by several machines together."""
    return bool(settings.api.rate_limit) and (_is_elsewhere(settings) or _in_accounts(settings))


def check_store(settings: Settings) -> None:
    """Raise SetupError where the store of a site has no driver, or the environment no address of it."""
    if not (settings.api.rate_limit and _is_elsewhere(settings)):
        return
    if find_spec("redis") is None:
        raise SetupError(FILE, None, "api.rate_store has no driver", "run `pip install 'bifolio[redis]'`")
    if not _url(settings.api.rate_store).startswith(("redis://", "rediss://")):
        variable = settings.api.rate_store.removeprefix(ENVIRONMENT)
        raise SetupError(FILE, None, f"api.rate_store: {variable} has no redis:// address", "set it")


class ShareCounts(Job):
    """Tells what is counted in a table, and takes over what others tell. For settings that `is_shared`."""

    name = "share-limits"

    def __init__(self, table: CountTable, settings: Settings, timing: Timing) -> None:
        self._table, self._settings, self._timing = table, settings, timing
        self.first_pause_s = timing.share_limits_s
        self._limit = parse(settings.api.rate_limit)
        self._store: Store | None = None
        self._is_away = False

    def start(self, context: JobContext) -> None:
        """Prepare the store, which is not connected to yet."""
        self._store = _store(self._settings)

    def run(self, context: JobContext) -> float:
        """Exchange counts once. While the store is away, it is tried again less often."""
        assert self._store is not None
        try:
            least = max(1, self._limit.amount // EXCHANGES_PER_LIMIT)
            exchange(self._table, self._store, least, self._limit.get_expiry())
        except Exception as error:  # Each driver has its own.
            self._store.close()
            reason = reason_of(error)
            if not self._is_away:
                log.error("requests are counted by this machine alone: %s", reason)
            self._is_away = True
            raise JobFailedError(str(reason), self._timing.share_limits_retry_s) from error
        if self._is_away:
            log.info("requests are counted with other machines again")
        self._is_away = False
        return self._timing.share_limits_s

    def close(self) -> None:
        """Close the store."""
        if self._store is not None:
            self._store.close()


def exchange(table: CountTable, store: Store, least: int, window_s: int) -> None:
    """Tell a store of the clients with at least so many requests that it does not know, once."""
    unsent = table.unsent(least, BATCH_CLIENTS)
    totals = store.add(unsent, window_s) if unsent else {}
    for one in unsent:
        table.told(one, *totals[one.id])


def _is_elsewhere(settings: Settings) -> bool:
    return settings.api.rate_store not in ("", MEMORY)


def _url(written: str) -> str:
    """The address of a store, which may be in the environment, since it can have a password."""
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
