"""Interface to a database, for SQLite and PostgreSQL. Statements use SQLite's syntax."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

LOCK_TIMEOUT_S = 10.0  # how long a transaction waits for other transactions
_CREATE = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Cursor(Protocol):
    """Result of a statement: the rows that it found, or the number of rows that it changed."""

    @property
    def rowcount(self) -> int:
        """Number of changed rows."""

    @property
    def description(self) -> Any:
        """A tuple for each column, which begins with the column's name."""

    def fetchone(self) -> Any:
        """Return the next row, or None if there are no more rows."""

    def fetchall(self) -> list[Any]:
        """Return all remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open transaction. Each `?` in a statement stands for one parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Execute a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement once for each row of parameters."""


class Engine(Protocol):
    """A database. Thread-safe; each process has its own connections."""

    # If the database can't be used, transactions raise the error that `Tables.refuse` returns.

    @property
    def is_read_only(self) -> bool:
        """Whether the database is known to reject writes, as a replica does. Never true for SQLite."""

    def open(self) -> None:
        """Connect, and create missing tables. Raises OSError and the driver's errors."""

    def is_current(self) -> bool:
        """Return whether the opened file is still at its path. Always True for PostgreSQL."""

    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> AbstractContextManager[Connection]:
        """Context manager: start a transaction that can write, after waiting up to `seconds` for other
        transactions.
        """
        # PostgreSQL allows more than one such transaction at a time. With PostgreSQL, the transaction
        # therefore first executes the statement `claim`, which can take a lock to keep others out.

    def reading(self) -> AbstractContextManager[Connection]:
        """Context manager: start a read-only transaction, which sees the database as it was at a single
        moment.
        """

    def close(self) -> None:
        """Close all connections. The next call opens the database again."""


class DuplicateError(Exception):
    """Raised if a row with the same key already exists."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a database can't be used. `reason` is a single line, or "" if the database does not respond."""

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one part of the server.

    - `schema` contains SQL statements, separated by ";".
    - `complete` converts tables of older versions and adds initial rows, before the indexes are created.
    - `refuse` returns the error to raise if the tables can't be used.
    - `prefix` is the beginning of all table and index names in PostgreSQL.
    """

    schema: str
    complete: Callable[[Connection], None]
    refuse: Callable[[Trouble], Exception]
    prefix: str = ""

    @property
    def names(self) -> list[str]:
        # The names of tables and indexes.
        return _CREATE.findall(self.schema)

    def make(self, connection: Connection) -> None:
        """Create missing tables and indexes. The caller must hold a lock."""
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.complete(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
