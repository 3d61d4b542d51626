"""A database elsewhere that does not answer: who comes next is told at once, and does not wait as well."""

import threading
from time import monotonic

from sqlalchemy.exc import TimeoutError as NoConnectionLeft
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from server.errors import UnavailableError

RETRY_S = 1.0  # how long nobody asks a database that has not answered
TRIAL_S = 10.0  # how long others leave it to one thread to ask it again


class Outage:
    """Whether a database is known not to answer. Safe to use from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._again: float | None = None  # when it may be asked again; None where nothing is wrong

    def check(self) -> None:
        """Raise UnavailableError while the database does not answer; now and then, one thread may ask it."""
        with self._lock:
            if self._again is not None:
                if monotonic() < self._again:
                    raise UnavailableError()
                self._again = monotonic() + TRIAL_S

    def begin(self) -> None:
        """The database has not answered."""
        with self._lock:
            self._again = monotonic() + RETRY_S

    def end(self) -> None:
        """The database has answered."""
        if self._again is not None:
            with self._lock:
                self._again = None


class Connections(QueuePool):
    """The connections to a database elsewhere. Each that is given out has just answered (`pool_pre_ping`)."""

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        self.outage = Outage()

    def connect(self) -> PoolProxiedConnection:
        """A connection. Raises UnavailableError, and what the driver raises where it makes none."""
        self.outage.check()
        try:
            connection = super().connect()
        except NoConnectionLeft as error:
            raise UnavailableError() from error
        except Exception:
            self.outage.begin()
            raise
        self.outage.end()
        return connection
