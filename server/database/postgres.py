"""Database engine for PostgreSQL, with response timeouts."""
# Without timeouts, a database server that hangs would block the site. Writes hold the write lock while they
# wait for the event log, and reads of accounts occupy threads. During an outage, only one thread contacts the
# server.

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

from server.database.engine import LOCK_TIMEOUT_S, Cursor, DatabaseFailure, Tables
from server.database.engine import Connection as AnyConnection
from server.database.outage import Outage, ReadOnlyError, reason_of
from server.database.pool import NoConnectionLeftError, Pool
from server.database.statements import translate

log = logging.getLogger("bifolio")

RESPONSE_TIMEOUT_S = 3.0  # how long to wait for the server to send something
RECENT_RESPONSE_S = 1.0  # If the server has responded within this time, timeouts are at least this long.
IDLE_TIMEOUT_S = 30  # The server ends transactions that are idle for longer than this.
READ_ONLY = "25006"  # SQLSTATE of an error: the database rejects writes
_SCHEMA_LOCK = 0x71756972650001  # number of the advisory lock for creating tables
# connect_timeout is in seconds, tcp_user_timeout in milliseconds. Without the encoding, psycopg may return
# bytes.
OPTIONS = {"connect_timeout": 3, "tcp_user_timeout": 5000, "client_encoding": "utf8"}
_READY_NONE = 0  # the value that psycopg passes every 0.1 s while no data arrives


class ResponseTimeoutError(OperationalError, TimeoutError):
    """Error raised if the server sends no data for too long. The connection is then closed."""


class BoundedConnection(Connection[Any]):
    """A psycopg connection. It is closed if the server sends no data for `max_silence_s` seconds."""

    max_silence_s = RESPONSE_TIMEOUT_S
    responded_at = 0.0

    def __del__(self, *_: Any) -> None:
        # A forked process must not close its parent's connection.
        pass

    def wait(self, gen: Generator[Any, Any, Any], *args: Any, **options: Any) -> Any:
        # Raises ResponseTimeoutError.
        try:
            return super().wait(_bounded(gen, self.max_silence_s), *args, **options)
        except ResponseTimeoutError:
            self.close()
            raise


def connect_to(url: str) -> BoundedConnection:
    """Return a new connection in autocommit mode. Raises psycopg.Error."""
    options: dict[str, Any] = {"autocommit": True, **OPTIONS}
    return BoundedConnection.connect(re.sub(r"^postgresql\+\w+", "postgresql", url), **options)


def require_writable(connection: BoundedConnection) -> None:
    # A replica rejects writes.
    row = connection.execute("SHOW transaction_read_only").fetchone()
    if row and row[0] == "on":
        raise ReadOnlyError()


def _bounded(gen: Generator[Any, Any, Any], max_silence_s: float) -> Generator[Any, Any, Any]:
    # Raises ResponseTimeoutError if no data arrives for `max_silence_s` seconds.
    last = monotonic()
    try:
        awaited = next(gen)
        while True:
            ready = yield awaited
            if ready != _READY_NONE:
                last = monotonic()
            elif monotonic() - last > max_silence_s:
                gen.close()
                raise ResponseTimeoutError(f"no response within {max_silence_s:g} s")
            awaited = gen.send(ready)
    except StopIteration as end:
        return end.value


class _Transaction:
    def __init__(self, connection: BoundedConnection, prefix: str) -> None:
        self._connection, self._prefix = connection, prefix

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(translate(statement, self._prefix), parameters)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        with self._connection.cursor() as cursor:
            cursor.executemany(translate(statement, self._prefix), rows)
        return None


class Postgres:
    """Database engine for PostgreSQL. `name` appears in log messages."""

    def __init__(self, url: str, tables: Tables, size: int, name: str) -> None:
        self._url, self._tables, self._name = url, tables, name
        self._pool = Pool(size, self._connect, _is_usable, _is_idle)
        self._lock = threading.Lock()
        self._begin_process()

    def _begin_process(self) -> None:
        self._answered_at = 0.0
        # connections that were made too late for their callers
        self._late: list[Future[BoundedConnection]] = []
        self._outage = Outage(self._try, self._name)
        self._pool.forget()
        self._process = os.getpid()  # This comes last, because other threads check it without the lock.

    @property
    def is_read_only(self) -> bool:
        return self._outage.read_only

    def open(self) -> None:
        with self._pool.lend(RESPONSE_TIMEOUT_S):
            pass

    def is_current(self) -> bool:
        # There is no file that could be replaced.
        return True

    @contextmanager
    def writing(self, timeout_s: float = LOCK_TIMEOUT_S, lock_statement: str = "") -> Iterator[AnyConnection]:
        wait = min(timeout_s, RESPONSE_TIMEOUT_S) * 900  # ms; less than the response timeout
        begin = (
            f"BEGIN; SET LOCAL lock_timeout = {wait:.0f}; {translate(lock_statement, self._tables.prefix)}"
        )
        with self._using(timeout_s) as connection, _between(connection, begin, "COMMIT"):
            yield _Transaction(connection, self._tables.prefix)

    @contextmanager
    def reading(self) -> Iterator[AnyConnection]:
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._using(RESPONSE_TIMEOUT_S) as connection, _between(connection, begin, "ROLLBACK"):
            yield _Transaction(connection, self._tables.prefix)

    def close(self) -> None:
        if self._process == os.getpid():
            self._outage.end()
            self._pool.clear()
            late, self._late = self._late, []
            for future in late:
                future.add_done_callback(_close_unused)

    @contextmanager
    def _using(self, timeout_s: float) -> Iterator[BoundedConnection]:
        if self._process != os.getpid():
            with self._lock:
                if self._process != os.getpid():
                    self._begin_process()
        if self._outage.is_unavailable:
            raise self._tables.to_error(DatabaseFailure())
        lively = monotonic() - self._answered_at < RECENT_RESPONSE_S
        patience = min(max(timeout_s, RECENT_RESPONSE_S if lively else 0.0), RESPONSE_TIMEOUT_S)
        connection = None
        try:
            with self._pool.lend(patience) as connection:
                connection.max_silence_s = patience
                yield connection
                connection.responded_at = self._answered_at = monotonic()
        except psycopg.Error as error:
            raise self._failure(error, connection) from error
        except NoConnectionLeftError as error:
            raise self._tables.to_error(DatabaseFailure(str(error))) from error

    def _failure(self, error: psycopg.Error, connection: BoundedConnection | None) -> Exception:
        # Records an outage, or closes unusable connections. Returns the error to raise.
        reason = reason_of(error)
        if isinstance(error, psycopg.IntegrityError):
            return self._tables.to_error(DatabaseFailure(reason, is_duplicate=True))
        if error.sqlstate == READ_ONLY:  # After a failover, a new connection may reach a different server.
            self._pool.clear()
            self._outage.begin(reason, read_only=True)
        elif connection is None or isinstance(error, ResponseTimeoutError):
            self._outage.begin(reason)
        elif connection.closed:  # After a restart, a new connection may work.
            self._pool.clear()
        elif self._name and not isinstance(error, OperationalError):
            log.error("%s can't be used: %s", self._name, reason)
        return self._tables.to_error(DatabaseFailure(reason))

    def _try(self) -> None:
        # Raises an error if the database does not respond or rejects writes.
        with self._pool.lend(RESPONSE_TIMEOUT_S) as connection:
            try:
                require_writable(connection)
                connection.responded_at = self._answered_at = monotonic()
            except ReadOnlyError:
                connection.close()  # A new connection may reach a writable server.
                raise

    def _connect(self, timeout_s: float) -> BoundedConnection:
        # Connects in another thread. Raises ResponseTimeoutError if this takes longer than `timeout_s`.
        # If the connection is made too late, a later caller gets it.
        try:
            future = self._late.pop()
        except IndexError:
            future = Future()
            threading.Thread(
                target=self._open_connection, args=(future,), name="connect", daemon=True
            ).start()
        is_late = future.done()
        try:
            connection = future.result(timeout_s)
        except ResponseTimeoutError:
            raise
        except TimeoutError as error:
            self._late.append(future)
            raise ResponseTimeoutError(f"no connection within {timeout_s:.1f} s") from error
        if is_late and not _is_usable(connection, timeout_s):
            connection.close()
            return self._connect(timeout_s)
        return connection

    def _open_connection(self, future: "Future[BoundedConnection]") -> None:
        try:
            connection = connect_to(self._url)
            try:
                connection.execute(f"SET idle_in_transaction_session_timeout = '{IDLE_TIMEOUT_S}s'")
                if not _tables_exist(connection, self._tables):
                    _create_tables(connection, self._tables)
            except BaseException:
                connection.close()
                raise
            connection.responded_at = monotonic()
            future.set_result(connection)
        except psycopg.Error as error:
            future.set_exception(error)
        except Exception as error:
            future.set_exception(OperationalError(str(error)))


def _close_unused(future: "Future[BoundedConnection]") -> None:
    if future.exception() is None:
        future.result().close()


@contextmanager
def _between(connection: BoundedConnection, begin: str, end: str) -> Iterator[None]:
    try:
        connection.execute(begin)
        yield
        connection.execute(end)
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise


def _is_usable(connection: BoundedConnection, seconds: float) -> bool:
    # Raises ResponseTimeoutError if the server does not respond within `seconds`.
    if monotonic() - connection.responded_at < RECENT_RESPONSE_S:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if not poll.poll(0):  # Unrequested data usually means that the server is closing the connection.
            return True
    connection.max_silence_s = seconds
    try:
        connection.execute("SELECT 1")
    except ResponseTimeoutError:
        raise
    except psycopg.Error:
        return False
    return True


def _is_idle(connection: BoundedConnection) -> bool:
    return not connection.closed and connection.info.transaction_status == TransactionStatus.IDLE


def _create_tables(connection: BoundedConnection, tables: Tables) -> None:
    # The lock is acquired before the transaction begins. Otherwise, the transaction would not see tables that
    # were created while it waited for the lock.
    connection.execute("SELECT pg_advisory_lock(%s)", (_SCHEMA_LOCK,))
    if not _tables_exist(connection, tables):
        with connection.transaction():
            tables.create(_Transaction(connection, tables.prefix))
    connection.execute("SELECT pg_advisory_unlock(%s)", (_SCHEMA_LOCK,))


def _tables_exist(connection: BoundedConnection, tables: Tables) -> bool:
    names = [f"{tables.prefix}{name}" for name in tables.names]
    row = connection.execute(
        "SELECT count(to_regclass(name)) FROM unnest(%s::text[]) AS name", (names,)
    ).fetchone()
    return bool(row and row[0] == len(names))
