"""Database engine for PostgreSQL, in which each wait for the server has a timeout.

If the database server is suspended or the network fails, connections stay open, but no data arrives. Without
timeouts, this would block the site: a content write holds the site's write lock while it waits for the event
log, and requests that read accounts occupy threads that other requests need. During an outage, only one
thread contacts the server.
"""

import logging
import os
import re
import select
import threading
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any

import psycopg
from psycopg import Connection, OperationalError
from psycopg.pq import TransactionStatus

from server.database.engine import LOCK_TIMEOUT_S, Cursor, Tables, Trouble
from server.database.engine import Connection as AnyConnection
from server.database.outage import Outage, ReadOnlyError, reason_of
from server.database.pool import NoConnectionLeftError, Pool
from server.database.statements import translated

log = logging.getLogger("bifolio")

RESPONSE_TIMEOUT_S = 3.0  # A statement fails if the server sends nothing for this long.
RECENT_RESPONSE_S = 1.0  # If the server responded within this time, timeouts are at least this long.
IDLE_TIMEOUT_S = 30  # The server ends transactions that are idle for longer than this.
READ_ONLY = "25006"  # SQLSTATE for a write in a read-only transaction
_SCHEMA_LOCK = 0x71756972650001  # Key of the advisory lock that is held while tables are created.
# connect_timeout is in seconds, tcp_user_timeout in milliseconds. The encoding is set because psycopg may
# otherwise return bytes for a database without an encoding.
OPTIONS = {"connect_timeout": 3, "tcp_user_timeout": 5000, "client_encoding": "utf8"}
_READY_NONE = 0  # psycopg sends this value every 0.1 s while no data arrives.


class SilentError(OperationalError, TimeoutError):
    """Raised if the server has sent nothing for too long. The connection has been closed."""


class BoundedConnection(Connection[Any]):
    """A psycopg connection that waits at most `silent_s` seconds for data from the server."""

    silent_s = RESPONSE_TIMEOUT_S
    answered_at = 0.0  # time of the last response from the server

    def __del__(self, *_: Any) -> None:
        """Do nothing, because a forked process must not close the connection of its parent process."""

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        """Run a generator that psycopg uses to wait for data. Raises SilentError if no data arrives for
        `silent_s` seconds.
        """
        try:
            return super().wait(_bounded(gen, self.silent_s), *args, **options)
        except SilentError:
            self.close()
            raise


def connect_to(url: str) -> BoundedConnection:
    """Connect to the accounts database. Each statement is committed immediately. Raises psycopg.Error."""
    options: dict[str, Any] = {"autocommit": True, **OPTIONS}
    return BoundedConnection.connect(re.sub(r"^postgresql\+\w+", "postgresql", url), **options)


def require_writable(connection: BoundedConnection) -> None:
    """Raise ReadOnlyError if the server rejects writes, as a replica does."""
    row = connection.execute("SHOW transaction_read_only").fetchone()
    if row and row[0] == "on":
        raise ReadOnlyError()


def _bounded(gen: Generator[Any, Any, Any], silent_s: float) -> Generator[Any, Any, Any]:
    """Wrap a generator from psycopg so that it raises SilentError if no data arrives for `silent_s`
    seconds.
    """
    last = monotonic()
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if ready != _READY_NONE:
                last = monotonic()
            elif monotonic() - last > silent_s:
                gen.close()
                raise SilentError(f"no response within {silent_s:g} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        return end.value


class _Transaction:
    """A transaction in which statements are written in SQLite's syntax. They are translated to PostgreSQL's
    syntax.
    """

    def __init__(self, connection: BoundedConnection, prefix: str) -> None:
        self._connection, self._prefix = connection, prefix

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(translated(statement, self._prefix), parameters)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        with self._connection.cursor() as cursor:
            cursor.executemany(translated(statement, self._prefix), rows)
        return None


class Postgres:
    """Engine for tables in the PostgreSQL database at `url`.

    `name` identifies the database in log messages.
    """

    def __init__(self, url: str, tables: Tables, size: int, name: str) -> None:
        self._url, self._tables, self._name = url, tables, name
        self._pool = Pool(size, self._connect, _is_usable, _is_idle)
        self._lock = threading.Lock()
        self._begin_process()

    def _begin_process(self) -> None:
        self._answered_at = 0.0
        self._late: list[Future[BoundedConnection]] = []  # connections whose callers no longer wait for them
        self._outage = Outage(self._try, self._name)
        self._pool.forget()
        self._process = os.getpid()  # Set last, because other threads check it without the lock.

    @property
    def is_read_only(self) -> bool:
        """Whether the database has rejected a write because it is read-only, and is still read-only."""
        return self._outage.read_only

    def open(self) -> None:
        """Connect to the database, and create missing tables."""
        with self._pool.lend(RESPONSE_TIMEOUT_S):
            pass

    def is_current(self) -> bool:
        """Return True, because there is no file that could be replaced."""
        return True

    @contextmanager
    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> Iterator[AnyConnection]:
        """Context manager: a transaction that can write. See `Engine.writing`."""
        wait = min(seconds, RESPONSE_TIMEOUT_S) * 900  # in ms; less than the response timeout
        begin = f"BEGIN; SET LOCAL lock_timeout = {wait:.0f}; {translated(claim, self._tables.prefix)}"
        with self._using(seconds) as connection, _between(connection, begin, "COMMIT"):
            yield _Transaction(connection, self._tables.prefix)

    @contextmanager
    def reading(self) -> Iterator[AnyConnection]:
        """Context manager: a read-only transaction. See `Engine.reading`."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._using(RESPONSE_TIMEOUT_S) as connection, _between(connection, begin, "ROLLBACK"):
            yield _Transaction(connection, self._tables.prefix)

    def close(self) -> None:
        if self._process == os.getpid():
            self._outage.end()
            self._pool.clear()
            late, self._late = self._late, []
            for future in late:
                future.add_done_callback(_close_made)

    @contextmanager
    def _using(self, seconds: float) -> Iterator[BoundedConnection]:
        """Context manager: use a connection. The time limit for obtaining a connection and for each response
        is `seconds`, or longer if the server has responded recently.
        """
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._begin_process()
        if self._outage.is_away:
            raise self._tables.refuse(Trouble())
        lively = monotonic() - self._answered_at < RECENT_RESPONSE_S
        patience = min(max(seconds, RECENT_RESPONSE_S if lively else 0.0), RESPONSE_TIMEOUT_S)
        connection = None
        try:
            with self._pool.lend(patience) as connection:
                connection.silent_s = patience
                yield connection
                connection.answered_at = self._answered_at = monotonic()
        except psycopg.Error as error:
            raise self._trouble(error, connection) from error
        except NoConnectionLeftError as error:
            raise self._tables.refuse(Trouble(str(error))) from error

    def _trouble(self, error: psycopg.Error, connection: BoundedConnection | None) -> Exception:
        """Process an error from the driver: record an outage if there is one, and close unusable connections.
        Return the error to raise.
        """
        reason = reason_of(error)
        if isinstance(error, psycopg.IntegrityError):
            return self._tables.refuse(Trouble(reason, is_duplicate=True))
        if error.sqlstate == READ_ONLY:  # After a failover, this may be a different server.
            self._pool.clear()
            self._outage.begin(reason, read_only=True)
        elif connection is None or isinstance(error, SilentError):
            self._outage.begin(reason)
        elif connection.closed:  # The server may have been restarted, so a new connection may work.
            self._pool.clear()
        elif self._name and not isinstance(error, OperationalError):
            log.error("%s can't be used: %s", self._name, reason)
        return self._tables.refuse(Trouble(reason))

    def _try(self) -> None:
        """Test whether the database responds and accepts writes. Raises an error if the test fails."""
        with self._pool.lend(RESPONSE_TIMEOUT_S) as connection:
            try:
                require_writable(connection)
                connection.answered_at = self._answered_at = monotonic()
            except ReadOnlyError:
                connection.close()  # A new connection may reach a writable server.
                raise

    def _connect(self, seconds: float) -> BoundedConnection:
        """Connect in a separate thread, and wait up to `seconds` for the connection. Raises psycopg.Error.

        If connecting takes longer, SilentError is raised. The connection is then used by a later caller.
        """
        try:
            future = self._late.pop()
        except IndexError:
            future = Future()
            threading.Thread(target=self._make, args=(future,), name="connect", daemon=True).start()
        is_late = future.done()
        try:
            connection = future.result(seconds)
        except SilentError:
            raise
        except TimeoutError as error:
            self._late.append(future)
            raise SilentError(f"no connection within {seconds:.1f} s") from error
        if is_late and not _is_usable(connection, seconds):
            connection.close()
            return self._connect(seconds)
        return connection

    def _make(self, future: "Future[BoundedConnection]") -> None:
        """Connect, and create missing tables. Store the connection or the error in `future`."""
        try:
            connection = connect_to(self._url)
            try:
                connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_TIMEOUT_S}s'")
                if not _are_made(connection, self._tables):
                    _make_tables(connection, self._tables)
            except BaseException:
                connection.close()
                raise
            connection.answered_at = monotonic()
            future.set_result(connection)
        except psycopg.Error as error:
            future.set_exception(error)
        except Exception as error:
            future.set_exception(OperationalError(str(error)))


def _close_made(future: "Future[BoundedConnection]") -> None:
    if future.exception() is None:
        future.result().close()


@contextmanager
def _between(connection: BoundedConnection, begin: str, end: str) -> Iterator[None]:
    """Context manager: a transaction that starts with the statement `begin` and ends with the statement
    `end`. It is rolled back if the block raises an exception.
    """
    try:
        connection.execute(begin)
        yield
        connection.execute(end)
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise


def _is_usable(connection: BoundedConnection, seconds: float) -> bool:
    """Whether a connection still works. For example, a connection is closed when the server restarts.

    Raises SilentError.
    """
    if monotonic() - connection.answered_at < RECENT_RESPONSE_S:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if not poll.poll(0):  # Data that was not requested means that the server is closing the connection.
            return True
    connection.silent_s = seconds
    try:
        connection.execute("SELECT 1")
    except SilentError:
        raise
    except psycopg.Error:
        return False
    return True


def _is_idle(connection: BoundedConnection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def _make_tables(connection: BoundedConnection, tables: Tables) -> None:
    """Create the tables, unless another process has just created them.

    The lock is acquired before the transaction starts. Otherwise, this transaction would not see tables that
    another process has created while this process was waiting for the lock.
    """
    connection.execute("SELECT pg_advisory_lock(%s)", (_SCHEMA_LOCK,))
    if not _are_made(connection, tables):
        with connection.transaction():
            tables.make(_Transaction(connection, tables.prefix))
    connection.execute("SELECT pg_advisory_unlock(%s)", (_SCHEMA_LOCK,))


def _are_made(connection: BoundedConnection, tables: Tables) -> bool:
    names = [f"{tables.prefix}{name}" for name in tables.names]
    row = connection.execute(
        "SELECT count(to_regclass(name)) FROM unnest(%s::text[]) AS name", (names,)
    ).fetchone()
    return bool(row and row[0] == len(names))
