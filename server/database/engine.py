"""Database interface for SQLite and PostgreSQL. Statements use SQLite's syntax."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

LOCK_TIMEOUT_S = 10.0  # how long a transaction waits for other transactions
_CREATE = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Cursor(Protocol):
    """Result of a statement."""

    @property
    def rowcount(self) -> int: ...

    @property
    def description(self) -> Any:
        """One tuple for each column, with the column's name first."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """An open transaction. In its statements, each parameter is written as `?`."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object: ...


class Engine(Protocol):
    """Thread-safe access to a database. Each process has its own connections."""

    # If the database can't be used, transactions raise the error that `Tables.to_error` returns.

    @property
    def is_read_only(self) -> bool:
        """True if the database currently rejects writes. Always False for SQLite."""

    def open(self) -> None:
        """Connect, and create missing tables. Raises OSError or an error of the database driver."""

    def is_current(self) -> bool:
        """Return False if the opened file has been deleted or replaced."""

    def writing(
        self, timeout_s: float = LOCK_TIMEOUT_S, lock_statement: str = ""
    ) -> AbstractContextManager[Connection]:
        """Begin a write transaction.

        Waits up to `timeout_s` seconds for other write transactions to end. In PostgreSQL, the transaction
        first executes `lock_statement`.
        """
        # PostgreSQL allows several write transactions at a time, unless `lock_statement` acquires a lock.

    def reading(self) -> AbstractContextManager[Connection]:
        """Begin a read-only transaction on a consistent snapshot."""

    def close(self) -> None:
        """Close all connections. The next transaction reconnects."""


class DuplicateError(Exception):
    """Error raised for a row whose key already exists in the table."""


@dataclass(frozen=True, slots=True)
class DatabaseFailure:
    """Description of a failed statement. `reason` is "" if the database does not respond."""

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """A group of database tables.

    - `schema`: SQL statements. Each is followed by ";" and a line break.
    - `migrate`: a function that updates tables of older versions of Bifolio, before indexes are created.
    - `to_error`: a function that returns the error to raise if a statement fails.
    - `prefix`: a prefix for the names of all tables and indexes in PostgreSQL.
    """

    schema: str
    migrate: Callable[[Connection], None]
    to_error: Callable[[DatabaseFailure], Exception]
    prefix: str = ""

    @property
    def names(self) -> list[str]:
        # The names of tables and indexes.
        return _CREATE.findall(self.schema)

    def create(self, connection: Connection) -> None:
        """Create missing tables and indexes.

        The caller must hold a lock, so that no other process creates them at the same time.
        """
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.migrate(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
