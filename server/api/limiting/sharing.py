"""Rate limits that multiple machines share through a store. Requests never wait for the store."""

import logging
import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from limits import parse

from server.api.limiting.count_table import CountTable
from server.api.limiting.shared_stores import PostgresStore, RedisStore, Store
from server.config.model import FILE, Settings
from server.database.address import is_postgres
from server.database.outage import reason_of
from server.errors import SetupError
from server.jobs.job import Job, JobContext, JobFailedError, Timing

log = logging.getLogger("bifolio")

# A client's count is sent once it has grown by 1/16 of the limit. Clients with few requests therefore cause
# no load on the store.
EXCHANGES_PER_LIMIT = 16
# `api.rate_store` is `memory`, a URL, or `env:` followed by the name of an environment variable.
MEMORY, ENVIRONMENT = "memory", "env:"
BATCH_CLIENTS = 1000


def is_shared(settings: Settings) -> bool:
    return bool(settings.api.rate_limit) and (_is_elsewhere(settings) or _in_accounts(settings))


def check_store(settings: Settings) -> None:
    """Raise SetupError if rate limits use Redis, but the package `redis` is missing or the URL is invalid."""
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


class CountSharingJob(Job):
    """Background job that sends this machine's request counts to the store and receives the totals."""

    name = "share-limits"

    def __init__(self, table: CountTable, settings: Settings, timing: Timing) -> None:
        self._table, self._settings, self._timing = table, settings, timing
        self.initial_delay_s = timing.share_limits_s
        self._limit = parse(settings.api.rate_limit)
        self._store: Store | None = None
        self._is_away = False

    def start(self, context: JobContext) -> None:
        self._store = _store(self._settings)

    def run(self, context: JobContext) -> float:
        assert self._store is not None
        try:
            least = max(1, self._limit.amount // EXCHANGES_PER_LIMIT)
            exchange_counts(self._table, self._store, least, self._limit.get_expiry())
        except Exception as error:  # Each driver has its own exceptions.
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
        if self._store is not None:
            self._store.close()


def exchange_counts(table: CountTable, store: Store, min_count: int, window_s: int) -> None:
    unsent = table.unsent(min_count, BATCH_CLIENTS)
    totals = store.add(unsent, window_s) if unsent else {}
    for one in unsent:
        table.record_total(one, *totals[one.id])


def _is_elsewhere(settings: Settings) -> bool:
    return settings.api.rate_store not in ("", MEMORY)


def _url(written: str) -> str:
    # An environment variable allows the URL to contain a password, which must not be in site.yaml.
    if written.startswith(ENVIRONMENT):
        return os.environ.get(written.removeprefix(ENVIRONMENT), "")
    return written


def _in_accounts(settings: Settings) -> bool:
    return not settings.api.rate_store and is_postgres(settings.accounts)


def _store(settings: Settings) -> Store:
    if _is_elsewhere(settings):
        return RedisStore(_url(settings.api.rate_store), f"bifolio/{settings.name}")
    postgres: Any = import_module("server.database.postgres")  # a lazy import (docs/packages.py)
    return PostgresStore(postgres, settings.accounts)
