"""Interface to a database, which is implemented for SQLite and for PostgreSQL.

All SQL statements use the syntax of SQLite. For PostgreSQL, `server.database.statements` translates them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

LOCK_TIMEOUT_S = 10.0  # A transaction waits up to this long for other transactions.
_CREATE = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Cursor(Protocol):
    """Result of an SQL statement: the rows that were found, or the number of rows that were changed."""

    @property
    def rowcount(self) -> int:
        """Return the number of rows that the statement has changed."""

    @property
    def description(self) -> Any:
        """Return a tuple for each column. Its first item is the name of the column."""

    def fetchone(self) -> Any:
        """Return the next row that the statement has found, or None after the last row."""

    def fetchall(self) -> list[Any]:
        """Return all rows that the statement has found and that were not fetched yet."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open transaction. `?` marks the place of each parameter in a statement."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Execute an SQL statement. Each `?` in it is replaced by the next of the `parameters`."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement once for each row. The items of a row are the parameters."""


class Engine(Protocol):
    """A database. Its methods can be called from any thread. Each process has its own connections.

    If the database can't be used, the methods raise the error that `Tables.refuse` returns.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether the database is known to reject writes, for example because it is a replica."""

    def open(self) -> None:
        """Connect, and create missing tables. Raises OSError and the errors of the database driver."""

    def is_current(self) -> bool:
        """Whether the database file that was opened is still at its path."""

    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> AbstractContextManager[Connection]:
        """Context manager: a transaction that is committed at the end of the block, or rolled back on an
        exception.

        Waits up to `seconds` for other transactions. SQLite allows only one writing transaction at a time.
        PostgreSQL allows several, so it first executes the statement `claim`, which can lock out others.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Context manager: a read-only transaction. All its statements see the data as it was at the same
        time.
        """

    def close(self) -> None:
        """Close all connections. The next call of another method opens the database again."""


class DuplicateError(Exception):
    """Error if a row is inserted whose key already exists."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why a database can't be used, in one line. It is "" if the database does not respond.

    `is_duplicate` means that a row with the same key already exists.
    """

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that one part of the server uses.

    - `schema`: the SQL statements that create them, separated by ";"
    - `complete`: is called after tables are created and before indexes are created. It adds initial rows and
      converts tables from older versions.
    - `refuse`: returns the error to raise if the tables can't be used
    - `prefix`: is added to the beginning of all names in PostgreSQL
    """

    schema: str
    complete: Callable[[Connection], None]
    refuse: Callable[[Trouble], Exception]
    prefix: str = ""

    @property
    def names(self) -> list[str]:
        """Return the names of all tables and indexes in `schema`."""
        return _CREATE.findall(self.schema)

    def make(self, connection: Connection) -> None:
        """Create missing tables and indexes. The transaction must already lock out other processes."""
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.complete(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
