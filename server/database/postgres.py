"""Connections to PostgreSQL that wait for no answer without end.

A server that is stopped closes no connection, and neither does a network that is gone. So whoever waits gives
up after a while.
"""

import re
from collections.abc import Generator
from time import monotonic
from typing import Any

from psycopg import Connection, OperationalError

from server.database.outage import ReadOnlyError

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
