"""Queue in which machines wait for their turn to push to a git remote. It requires PostgreSQL."""
# The queue is only for fairness. Without PostgreSQL, pushes don't wait.

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from server.database.address import is_postgres

LOCK_TIMEOUT_S = 5.0  # how long a process waits for other processes
# PostgreSQL closes idle sessions after this time, which frees the lock of a machine that has lost power.
SESSION_TIMEOUT_S = 20.0
BACKOFF_S = 10.0  # After an error, the queue is skipped for this long.
# Multiple sites can use one database, in different schemas.
_KEY = "hashtextextended('bifolio_push_' || current_schema(), 0)"


class PushTurnQueue:
    """Queue in which machines wait for their turn to push to a git remote.

    It uses a database lock, and is not thread-safe.
    """

    def __init__(self, url: str = "") -> None:
        self.is_shared = is_postgres(url)
        self._url = url
        self._connection: Any = None
        self._is_first = False
        self._rests_until = 0.0

    @contextmanager
    def turn(self, timeout_s: float) -> Iterator[bool]:
        """Wait up to `timeout_s` seconds for this machine's turn to push. Yield True if it had to wait."""
        waited = self._enter(min(timeout_s, LOCK_TIMEOUT_S))
        try:
            yield waited
        finally:
            self.leave()

    def leave(self) -> None:
        if self._is_first:
            self._is_first = False
            with suppress(self._errors):
                self._connection.execute(f"SELECT pg_advisory_unlock({_KEY})")
                return
            self._drop()

    def _enter(self, timeout_s: float) -> bool:
        if not self.is_shared or time.monotonic() < self._rests_until:
            return False
        waited = False
        try:
            connection = self._connected()
            (self._is_first,) = connection.execute(f"SELECT pg_try_advisory_lock({_KEY})").fetchone()
            if not self._is_first:
                waited = True
                connection.execute(f"SET lock_timeout = {max(int(timeout_s * 1000), 1)}")
                connection.execute(f"SELECT pg_advisory_lock({_KEY})")
                self._is_first = True
        except self._errors:
            self._drop()
            self._rests_until = time.monotonic() + BACKOFF_S
        return waited

    def _connected(self) -> Any:
        # PostgreSQL may have closed the connection. Raises psycopg.Error.
        if self._connection is not None:
            with suppress(self._errors):
                self._connection.execute("")
                return self._connection
            self._drop()
        connection = self._postgres.connect_to(self._url)
        connection.max_silence_s = LOCK_TIMEOUT_S + self._postgres.RESPONSE_TIMEOUT_S
        connection.execute(f"SET idle_session_timeout = {int(SESSION_TIMEOUT_S * 1000)}")
        self._connection = connection
        return connection

    def _drop(self) -> None:
        connection, self._connection, self._is_first = self._connection, None, False
        if connection is not None:
            with suppress(self._errors):
                connection.close()

    @property
    def _postgres(self) -> Any:
        return import_module("server.database.postgres")  # a lazy import (docs/packages.py)

    @property
    def _errors(self) -> type[Exception]:
        error_type: type[Exception] = self._postgres.BoundedConnection.Error
        return error_type
