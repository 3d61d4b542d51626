"""Detection of database outages, during which requests fail immediately."""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from server.errors import UnavailableError

log = logging.getLogger("bifolio")

RETRY_INTERVAL_S = 1.0


class ReadOnlyError(Exception):
    """Error raised if a database rejects writes."""


class Outage:
    """Thread-safe tracker of database outages."""

    # `probe` tests the database. `name` is the name to use in the log; if it is "", nothing is logged.

    def __init__(self, probe: Callable[[], object], name: str) -> None:
        self._probe, self._name = probe, name
        self._lock = threading.Lock()
        self._retrying = self._unavailable = False

    @property
    def is_unavailable(self) -> bool:
        return self._unavailable

    @property
    def read_only(self) -> bool:
        return self._retrying and not self._unavailable

    def check(self) -> None:
        if self._unavailable:
            raise UnavailableError()

    def begin(self, reason: str, *, read_only: bool = False) -> None:
        """Record an outage, and test the database in a thread until it recovers."""
        with self._lock:
            was_retrying, self._retrying = self._retrying, True
            self._unavailable = self._unavailable or not read_only
        if not was_retrying:
            if self._name:
                log.error("%s can't be %s: %s", self._name, "written" if read_only else "used", reason)
            threading.Thread(target=self._retry, name="outage", daemon=True).start()

    def end(self) -> None:
        # This is called when the database is no longer used.
        with self._lock:
            self._retrying = self._unavailable = False

    def _retry(self) -> None:
        while self._retrying:
            time.sleep(RETRY_INTERVAL_S)
            with suppress(Exception):
                self._end_if_available()

    def _end_if_available(self) -> None:
        try:
            self._probe()
        except ReadOnlyError:
            self._unavailable = False
            return
        with self._lock:
            was_retrying, self._retrying, self._unavailable = self._retrying, False, False
        if self._name and was_retrying:
            log.info("%s is available again", self._name)


def reason_of(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
