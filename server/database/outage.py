"""Detects database outages, during which requests fail immediately instead of waiting."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from server.errors import UnavailableError

log = logging.getLogger("bifolio")

RETRY_INTERVAL_S = 1.0


class ReadOnlyError(Exception):
    """Raised if a database rejects writes."""


class Outage:
    """Thread-safe record of whether a database is available."""

    # `trial` tests the database. `name` is the name to use in the log; if it is "", nothing is logged.

    def __init__(self, trial: Callable[[], object], name: str) -> None:
        self._trial, self._name = trial, name
        self._lock = threading.Lock()
        self._trying = self._away = False

    @property
    def is_away(self) -> bool:
        return self._away

    @property
    def read_only(self) -> bool:
        return self._trying and not self._away

    def check(self) -> None:
        if self._away:
            raise UnavailableError()

    def begin(self, reason: str, *, read_only: bool = False) -> None:
        """Record that the database is unavailable or read-only.

        Keep testing the database in the background until it recovers.
        """
        with self._lock:
            was_trying, self._trying = self._trying, True
            self._away = self._away or not read_only
        if not was_trying:
            if self._name:
                log.error("%s can't be %s: %s", self._name, "written" if read_only else "used", reason)
            threading.Thread(target=self._try, name="outage", daemon=True).start()

    def end(self) -> None:
        # This is called when the database is no longer used.
        with self._lock:
            self._trying = self._away = False

    def _try(self) -> None:
        while self._trying:
            time.sleep(RETRY_INTERVAL_S)
            with suppress(Exception):
                self._end_if_well()

    def _end_if_well(self) -> None:
        try:
            self._trial()
        except ReadOnlyError:
            self._away = False
            return
        with self._lock:
            was_trying, self._trying, self._away = self._trying, False, False
        if self._name and was_trying:
            log.info("%s is available again", self._name)


def reason_of(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
