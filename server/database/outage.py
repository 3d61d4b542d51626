"""A database elsewhere that can't be used: who asks for it is told at once, and does not wait as well.

The log says it once, and once when it can be used again: a thread finds that out, so that no request has to
try. A database that refuses to write, as one that another takes the place of, is still read.
"""

import logging
import threading
import time
from collections.abc import Callable
from contextlib import suppress

from server.errors import UnavailableError

log = logging.getLogger("quire")

RETRY_S = 1.0  # from one trial to the next


class ReadOnlyError(Exception):
    """The database answers, and refuses to write."""


class Outage:
    """Whether a database can be used; `trial` finds that out, and raises where it can't be.

    `name` is what the log calls the database; "" where somebody else tells of it. Safe to use from many
    threads.
    """

    def __init__(self, trial: Callable[[], object], name: str) -> None:
        self._trial, self._name = trial, name
        self._lock = threading.Lock()
        self._trying = self._away = False

    @property
    def is_away(self) -> bool:
        """Whether the database does not answer."""
        return self._away

    @property
    def read_only(self) -> bool:
        """Whether it can be read alone."""
        return self._trying and not self._away

    def check(self) -> None:
        """Raise UnavailableError while the database does not answer."""
        if self._away:
            raise UnavailableError()

    def begin(self, reason: str, *, read_only: bool = False) -> None:
        """The database can't be used for a reason, or not be written."""
        with self._lock:
            was_trying, self._trying = self._trying, True
            self._away = self._away or not read_only
        if not was_trying:
            if self._name:
                log.error("%s can't be %s: %s", self._name, "written" if read_only else "used", reason)
            threading.Thread(target=self._try, name="outage", daemon=True).start()

    def end(self) -> None:
        """Try no longer, since nobody uses the database."""
        with self._lock:
            self._trying = self._away = False

    def _try(self) -> None:
        while self._trying:
            time.sleep(RETRY_S)
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
            log.info("%s can be used again", self._name)


def reason_of(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error) or type(error).__name__).splitlines()[0]
