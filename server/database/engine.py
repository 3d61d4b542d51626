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
        """Return a sequence with one tuple for each column. The first item of each tuple is the column's
        name.
        """

    def fetchone(self) -> Any:
        """Return the next row that the statement has found, or None after the last row."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows that the statement has found."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open transaction. In an SQL statement, each `?` stands for one parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Execute an SQL statement. The first `?` is replaced by the first of the `parameters`, and so on."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement once for each row in `rows`. The items of the row are the parameters."""


class Engine(Protocol):
    """A database. Its methods can be called from any thread. Each process has its own connections.

    If the database can't be used, `reading` and `writing` raise the error that `Tables.refuse` returns.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether the database is known to reject writes at present, for example because it is a replica.
        Always False for SQLite.
        """

    def open(self) -> None:
        """Connect, and create missing tables. Raises OSError and the errors of the database driver."""

    def is_current(self) -> bool:
        """Whether the database file that was opened is still at its path. Always True for PostgreSQL."""

    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> AbstractContextManager[Connection]:
        """Context manager: a transaction that is committed at the end of the block, or rolled back if the
        block raises an exception.

        Waits up to `seconds` for other transactions. SQLite allows only one writing transaction at a time.
        PostgreSQL allows several, so the statement `claim` is executed first in PostgreSQL. It can acquire a
        lock that excludes other transactions.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Context manager: a read-only transaction. All its statements see the database as it was at one
        moment.
        """

    def close(self) -> None:
        """Close all connections. The database is opened again when another method is called."""


class DuplicateError(Exception):
    """Raised if a row is inserted but a row with the same key already exists."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Description of the error that prevents a database from being used.

    `reason` is one line, or "" if the database does not respond. `is_duplicate` means that a row with the
    same key already exists.
    """

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables that one part of the server uses.

    - `schema` contains the SQL statements that create the tables and indexes, separated by ";".
    - `complete` is called after the tables and before the indexes are created. It adds initial rows and
      converts tables from older versions.
    - `refuse` returns the error to raise if the tables can't be used.
    - `prefix` is added to the beginning of all table and index names in PostgreSQL.
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
        """Create missing tables and indexes. Before that, the caller must ensure that no other process
        creates the tables at the same time.
        """
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.complete(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
