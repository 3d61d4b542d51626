"""Interface of a database: SQLite or PostgreSQL.

All statements use SQLite's syntax; `server.database.statements` translates them for PostgreSQL.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

LOCK_TIMEOUT_S = 10.0  # How long a transaction waits for other transactions.
_CREATE = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Cursor(Protocol):
    """Result of a statement: the rows that it found, or the number of rows that it changed."""

    @property
    def rowcount(self) -> int:
        """Return the number of changed rows."""

    @property
    def description(self) -> Any:
        """Return a tuple for each column; its first item is the column's name."""

    def fetchone(self) -> Any:
        """Return the next row, or None after the last one."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A transaction. Parameters in statements are written as `?`."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Execute a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement once for each row of parameters."""


class Engine(Protocol):
    """A database. Thread-safe; each process has its own connections.

    If the database can't be used, methods raise the error that `Tables.refuse` returns.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether the database is known to reject writes."""

    def open(self) -> None:
        """Connect and create missing tables. Raises OSError and the driver's errors."""

    def is_current(self) -> bool:
        """Whether the file that was opened is still at its path."""

    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> AbstractContextManager[Connection]:
        """Context manager: a transaction that is committed at the end, or rolled back on an exception.

        Waits at most `seconds` for other transactions. SQLite allows only one writer at a time. PostgreSQL
        first executes the statement `claim`, which can lock out other writers.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Context manager: a read-only transaction with a consistent view of the data."""

    def close(self) -> None:
        """Close all connections. The next use opens the database again."""


class DuplicateError(Exception):
    """Another row already has this key."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """The reason why a database can't be used, in one line; "" if it does not respond.

    `is_duplicate` is set if another row already has the key.
    """

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one part of the server.

    - `schema`: the SQL statements that create them, separated by ";"
    - `complete`: called after tables and before indexes are created, to add initial rows and migrate older
      tables
    - `refuse`: returns the error to raise if the tables can't be used
    - `prefix`: prepended to all names in PostgreSQL
    """

    schema: str
    complete: Callable[[Connection], None]
    refuse: Callable[[Trouble], Exception]
    prefix: str = ""

    @property
    def names(self) -> list[str]:
        """Return the names of the tables and indexes."""
        return _CREATE.findall(self.schema)

    def make(self, connection: Connection) -> None:
        """Create missing tables and indexes. The caller's transaction must lock out other processes."""
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.complete(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
