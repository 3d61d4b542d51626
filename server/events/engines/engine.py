"""What the log of events asks of a database; all else is SQL that both databases understand."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Cursor(Protocol):
    """The rows that a statement has found, or the number of those that it has changed."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

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
    """A database, for several threads; each process connects for itself. What it does raises StorageError.

    `clone` tells the files of this machine from those of others that keep their events in the same database.
    """

    @property
    def clone(self) -> str:
        """The id of this clone of the site."""

    def writing(self, seconds: float) -> AbstractContextManager[Connection]:
        """A transaction that is done, or not done, with the block. One writes at a time, so that the order of
        events is that in which they are seen; others wait so long at most.
        """

    def reading(self) -> AbstractContextManager[Connection]:
        """A transaction that sees one state, and writes nothing."""

    def mark(self) -> int:
        """A number that differs whenever anybody else has written."""

    def leads(self) -> bool:
        """Whether this machine is the one that delivers webhooks."""

    def close(self) -> None:
        """Let go of the database."""
