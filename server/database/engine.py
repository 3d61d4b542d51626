"""The interface of a database, SQLite or PostgreSQL: transactions and statements.

Statements are written for SQLite. `server.database.statements` translates them for PostgreSQL.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

LOCK_TIMEOUT_S = 10.0  # How long a transaction waits for other transactions.
_CREATE = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Cursor(Protocol):
    """The rows that a statement found, or the number of rows that it changed."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    @property
    def description(self) -> Any:
        """A tuple for each column of the rows; its first item is the name."""

    def fetchone(self) -> Any:
        """Return the next row, or None after the last."""

    def fetchall(self) -> list[Any]:
        """Return the remaining rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A transaction. Statements have a `?` for each parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Execute a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Execute a statement once for each row of parameters."""


class Engine(Protocol):
    """A database that several threads can use. Each process has its own connections.

    If the database can't be used, its methods raise what `Tables.refuse` returns.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether the database is known to refuse writes."""

    def open(self) -> None:
        """Connect and create missing tables. Raises OSError and the errors of the driver."""

    def is_current(self) -> bool:
        """Return whether the opened file is still at its path, neither removed nor replaced."""

    def writing(self, seconds: float = LOCK_TIMEOUT_S, claim: str = "") -> AbstractContextManager[Connection]:
        """Run a block as a transaction: commit it, or roll it back if the block raises.

        It waits up to `seconds` for other transactions. SQLite allows one writer at a time. PostgreSQL
        executes `claim` first, a statement that can lock other writers out.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """Run a block as a read-only transaction, which sees one state."""

    def close(self) -> None:
        """Close all connections. The next use opens the database again."""


class DuplicateError(Exception):
    """Another row already has this key."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a database refused: a reason in one line, "" if it does not answer.

    `is_duplicate` says that another row already has the key.
    """

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one part of the server. `schema` has the statements that create them, separated by ";".

    `complete` runs after tables were created and before the indexes: it writes the first rows and migrates
    tables of an older release. `refuse` returns the error to raise if the tables can't be used. PostgreSQL
    puts `prefix` before each name.
    """

    schema: str
    complete: Callable[[Connection], None]
    refuse: Callable[[Trouble], Exception]
    prefix: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the tables and indexes."""
        return _CREATE.findall(self.schema)

    def make(self, connection: Connection) -> None:
        """Create missing tables and indexes, in a transaction that locks out other processes."""
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.complete(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
