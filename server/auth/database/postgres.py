"""Connections to PostgreSQL that wait for no answer without end.

A server that is stopped closes no connection, and neither does a network that is gone. So whoever waits gives
up after a while."""

import logging
import re
import threading
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from time import monotonic
from typing import Any

from psycopg import Connection, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnectionLeft
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from server.errors import UnavailableError

# --- outage ---------------------------------------------------------------------------------------

log = logging.getLogger("quire")

RETRY_S = 1.0  # from one trial to the next


class ReadOnlyError(Exception):
    """The database answers, and refuses to write."""


class Outage:
    """Whether a database can be used; `trial` finds that out, and raises where it can't be.

    Safe to use from many threads.
    """

    def __init__(self, trial: Callable[[], object]) -> None:
        self._trial = trial
        self._lock = threading.Lock()
        self._trying = self._away = False

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
            log.error("the accounts database can't be %s: %s", "written" if read_only else "used", reason)
            threading.Thread(target=self._try, name="accounts", daemon=True).start()

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
            self._trying = self._away = False
        log.info("the accounts database can be used again")


def reason_of(error: BaseException) -> str:
    """What an error says, in one line."""
    return (str(error) or type(error).__name__).splitlines()[0]


# --- postgres -------------------------------------------------------------------------------------

SILENT_S = 3.0  # how long a server may send nothing while it is waited for
# How many seconds a server may take to accept a connection, and milliseconds to acknowledge what was sent;
# and the encoding, since psycopg takes texts for bytes where neither the database nor the connection has one.
OPTIONS = {"connect_timeout": 3, "tcp_user_timeout": 5000, "client_encoding": "utf8"}
NOTHING = 0  # what psycopg sends to who waits, each 0.1 s, where nothing has come


class SilentError(OperationalError, TimeoutError):
    """The server has sent nothing for too long; the connection is closed."""


class BoundedConnection(Connection[Any]):
    """A connection of psycopg's, on which nothing is waited for longer than `silent_s`."""

    silent_s = SILENT_S

    def __del__(self, *_: Any) -> None:
        """It is closed by the process that made it, and not by those that were forked from that."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Do what `gen` does, which says what it waits for. Raises SilentError."""
        try:
            return super().wait(_bounded(gen, self.silent_s), *args, **options)
        except SilentError:
            self.close()
            raise


def connect_to(url: str) -> BoundedConnection:
    """A connection to where settings say that the accounts are, on which each statement is a transaction.

    Raises psycopg.Error.
    """
    options: dict[str, Any] = {"autocommit": True, **OPTIONS}
    return BoundedConnection.connect(re.sub(r"^postgresql\+\w+", "postgresql", url), **options)


def connect(_dialect: Any, _record: Any, args: list[Any], options: dict[str, Any]) -> BoundedConnection:
    """Make a connection as SQLAlchemy asks for one (its event `do_connect`)."""
    return BoundedConnection.connect(*args, **options)


def require_writable(connection: BoundedConnection) -> None:
    """Raise ReadOnlyError where a server takes no writes, as one that follows another."""
    row = connection.execute("SHOW transaction_read_only").fetchone()
    if row and row[0] == "on":
        raise ReadOnlyError()


def _bounded(gen: Generator[Any, Any, Any], silent_s: float) -> Generator[Any, Any, Any]:
    """What `gen` waits for and returns, with a SilentError in place of a wait that takes too long."""
    last = monotonic()
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if ready != NOTHING:
                last = monotonic()
            elif monotonic() - last > silent_s:
                gen.close()
                raise SilentError(f"it has sent nothing for {silent_s:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


# --- connections ----------------------------------------------------------------------------------


class Connections(QueuePool):
    """A pool of connections. Each that is given out has just answered (`pool_pre_ping`).

    `require_writable` is given a connection of the driver's, and raises ReadOnlyError where that can't write.
    """

    require_writable: Callable[[Any], None] | None = None
    is_opened = False  # Until it is, whoever opens it tells what is wrong, and tries again.

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outage = Outage(self._try)

    def connect(self) -> PoolProxiedConnection:
        """A connection. Raises UnavailableError, and what the driver raises where it makes none."""
        self.outage.check()
        try:
            return super().connect()
        except NoConnectionLeft as error:
            raise UnavailableError() from error
        except Exception as error:
            if self.is_opened:
                self.outage.begin(reason_of(error.__cause__ or error))
            raise

    def _try(self) -> None:
        """Ask the database, and whether it can be written."""
        connection = super().connect()
        try:
            if self.require_writable:
                self.require_writable(connection.dbapi_connection)
        except ReadOnlyError:
            connection.invalidate()  # The next may be to another server, which can be written.
            raise
        finally:
            connection.close()
