"""A database in PostgreSQL, on connections that wait for no answer without end.

A server that is stopped closes no connection, and neither does a network that is gone. So whoever waits gives
up after a while: a write of content waits for the log of events under the site's lock, and a request for the
accounts in a thread that others need. While a server does not answer, nobody asks it but a thread of its own.
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

RESPONSE_TIMEOUT_S = 3.0  # How long the server may send nothing while a statement runs.
RECENT_RESPONSE_S = 1.0  # After a response so recent, a wait lasts at least as long.
IDLE_TIMEOUT_S = 30  # The server ends a transaction whose process is idle for longer.
READ_ONLY = "25006"  # the state in which a transaction must not write
_SCHEMA_LOCK = 0x71756972650001  # Nobody else locks by this number.
# How many seconds a server may take to accept a connection, and milliseconds to acknowledge what was sent;
# and the encoding, since psycopg takes texts for bytes where neither the database nor the connection has one.
OPTIONS = {"connect_timeout": 3, "tcp_user_timeout": 5000, "client_encoding": "utf8"}
_READY_NONE = 0  # psycopg sends this each 0.1 s while nothing has arrived.


class SilentError(OperationalError, TimeoutError):
    """The server has sent nothing for too long; the connection is closed."""


class BoundedConnection(Connection[Any]):
    """A connection of psycopg's, on which nothing is waited for longer than `silent_s`."""

    silent_s = RESPONSE_TIMEOUT_S
    answered_at = 0.0  # when it has done last what was asked

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
            if ready != _READY_NONE:
                last = monotonic()
            elif monotonic() - last > silent_s:
                gen.close()
                raise SilentError(f"no response for {silent_s:g} s")
            wanted = gen.send(ready)
    except StopIteration as end:
        return end.value


class _Transaction:
    """A transaction of psycopg's, to which statements are translated."""

    def __init__(self, connection: BoundedConnection, prefix: str) -> None:
        self._connection, self._prefix = connection, prefix

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        return self._connection.execute(translated(statement, self._prefix), parameters)

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        with self._connection.cursor() as cursor:
            cursor.executemany(translated(statement, self._prefix), rows)
        return None


class Postgres:
    """Some tables in the database at an address (`server.database.engine`); the log calls it by a name."""

    def __init__(self, url: str, tables: Tables, size: int, name: str) -> None:
        self._url, self._tables, self._name = url, tables, name
        self._pool = Pool(size, self._connect, _is_usable, _is_idle)
        self._lock = threading.Lock()
        self._begin_process()

    def _begin_process(self) -> None:
        self._answered_at = 0.0
        self._late: list[Future[BoundedConnection]] = []  # connections that somebody did not wait for
        self._outage = Outage(self._try, self._name)
        self._pool.forget()
        self._process = os.getpid()  # Once all is ready: other threads look at it without the lock.

    @property
    def is_read_only(self) -> bool:
        """Whether it was asked to write, and refused."""
        return self._outage.read_only

    def open(self) -> None:
        """Connect, and make what is missing of the tables."""
        with self._pool.lend(RESPONSE_TIMEOUT_S):
            pass

    def is_current(self) -> bool:
        """There is no file."""
        return True

    @contextmanager
    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> Iterator[AnyConnection]:
        """A transaction that writes."""
        wait = min(seconds, RESPONSE_TIMEOUT_S) * 900  # ms: less than an answer may take
        begin = f"BEGIN; SET LOCAL lock_timeout = {wait:.0f}; {translated(claim, self._tables.prefix)}"
        with self._using(seconds) as connection, _between(connection, begin, "COMMIT"):
            yield _Transaction(connection, self._tables.prefix)

    @contextmanager
    def reading(self) -> Iterator[AnyConnection]:
        """A transaction that reads."""
        begin = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
        with self._using(RESPONSE_TIMEOUT_S) as connection, _between(connection, begin, "ROLLBACK"):
            yield _Transaction(connection, self._tables.prefix)

    def close(self) -> None:
        """Let go of the database."""
        if self._process == os.getpid():
            self._outage.end()
            self._pool.clear()
            late, self._late = self._late, []
            for future in late:
                future.add_done_callback(_close_made)

    @contextmanager
    def _using(self, seconds: float) -> Iterator[BoundedConnection]:
        """A connection, for this thread alone, which waits so long for an answer, or a moment."""
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
        """What is raised for an error of the driver's; what that says of the database is noted."""
        reason = reason_of(error)
        if isinstance(error, psycopg.IntegrityError):
            return self._tables.refuse(Trouble(reason, is_duplicate=True))
        if error.sqlstate == READ_ONLY:  # Another server may have taken its place at this address.
            self._pool.clear()
            self._outage.begin(reason, read_only=True)
        elif connection is None or isinstance(error, SilentError):
            self._outage.begin(reason)
        elif connection.closed:  # It may have been started again; to connect anew tells.
            self._pool.clear()
        elif self._name and not isinstance(error, OperationalError):
            log.error("%s can't be used: %s", self._name, reason)
        return self._tables.refuse(Trouble(reason))

    def _try(self) -> None:
        """Ask the database, and whether it can be written."""
        with self._pool.lend(RESPONSE_TIMEOUT_S) as connection:
            try:
                require_writable(connection)
                connection.answered_at = self._answered_at = monotonic()
            except ReadOnlyError:
                connection.close()  # The next may be to another server, which can be written.
                raise

    def _connect(self, seconds: float) -> BoundedConnection:
        """A connection that is made by a thread, within so many seconds. Raises psycopg.Error.

        One that takes longer is there for who comes later.
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
            raise SilentError(f"no connection after {seconds:.1f} s") from error
        if is_late and not _is_usable(connection, seconds):
            connection.close()
            return self._connect(seconds)
        return connection

    def _make(self, future: "Future[BoundedConnection]") -> None:
        """Connect, and make the tables that are missing."""
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
    """A block in a transaction, which is rolled back where anything fails."""
    try:
        connection.execute(begin)
        yield
        connection.execute(end)
    except BaseException:
        with suppress(psycopg.Error):
            connection.execute("ROLLBACK")
        raise


def _is_usable(connection: BoundedConnection, seconds: float) -> bool:
    """Whether the server has not closed a connection, as one that was started again. Raises SilentError."""
    if monotonic() - connection.answered_at < RECENT_RESPONSE_S:
        poll = select.poll()
        poll.register(connection.fileno(), select.POLLIN)
        if not poll.poll(0):  # What it sends unasked is that it ends.
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
    """Make the tables, unless another process has done so meanwhile.

    The lock is taken before the transaction begins: one that had begun could not see the tables of others.
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
