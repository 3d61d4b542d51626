"""A database as the rest of the server uses it, SQLite or PostgreSQL: transactions, and statements for both.

A statement is written as SQLite understands it; `server.database.statements` translates it for PostgreSQL.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

WAIT_S = 10.0  # how long a transaction waits for those of others
_MADE = re.compile(r"CREATE (?:UNIQUE )?(?:TABLE|INDEX) IF NOT EXISTS (\w+)")


class Cursor(Protocol):
    """The rows that a statement has found, or the number of those that it has changed."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    @property
    def description(self) -> Any:
        """What is known of the columns of the rows; the name comes first."""

    def fetchone(self) -> Any:
        """The next row, None where there is none."""

    def fetchall(self) -> list[Any]:
        """The rows that are left."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A transaction. Its statements have `?` for each parameter."""

    def execute(self, statement: str, parameters: Sequence[Any] = (), /) -> Cursor:
        """Do a statement."""

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Do a statement with each of some rows of parameters."""


class Engine(Protocol):
    """A database, for several threads; each process connects for itself.

    Where it can't be used, it raises what the `refuse` of its tables returns.
    """

    @property
    def is_read_only(self) -> bool:
        """Whether it is known to refuse to write."""

    def open(self) -> None:
        """Connect, and make what is missing of the tables. Raises what the driver raises, and OSError."""

    def is_current(self) -> bool:
        """Whether nobody has removed the file that was opened, or put another in its place."""

    def writing(self, seconds: float = WAIT_S, claim: str = "") -> AbstractContextManager[Connection]:
        """A transaction that is done, or not done, with the block; it waits for others so long at most.

        In SQLite one writes at a time; elsewhere `claim`, a statement to begin with, can see to that.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state, and writes nothing."""

    def close(self) -> None:
        """Let go of the database. It is opened again when it is used."""


class DuplicateError(Exception):
    """Another row has the same key."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a database has not done something, in a line ("" while it is away), and whether that is because
    another row has the same key.
    """

    reason: str = ""
    is_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables of one part of the server, and the statements that make them, with ";" at the ends of lines.

    `complete` is called when some are made, before the indexes: it writes first rows, and brings tables of an
    older release up to date. `refuse` makes the error that is raised where they can't be used. In PostgreSQL,
    `prefix` goes before each name.
    """

    schema: str
    complete: Callable[[Connection], None]
    refuse: Callable[[Trouble], Exception]
    prefix: str = ""

    @property
    def names(self) -> list[str]:
        """The names of the tables and indexes."""
        return _MADE.findall(self.schema)

    def make(self, connection: Connection) -> None:
        """Make what is missing, in a transaction in which nobody else does."""
        statements = [statement.strip() for statement in self.schema.strip().split(";\n")]
        for statement in statements:
            if statement.startswith("CREATE TABLE"):
                connection.execute(statement)
        self.complete(connection)
        for statement in statements:
            if not statement.startswith("CREATE TABLE"):
                connection.execute(statement)
