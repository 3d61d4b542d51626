"""The connections to a database elsewhere, and what happens where there are none."""

from collections.abc import Callable
from typing import Any

from sqlalchemy.exc import TimeoutError as NoConnectionLeft
from sqlalchemy.pool import PoolProxiedConnection, QueuePool

from server.database.outage import Outage, ReadOnlyError, reason_of
from server.errors import UnavailableError


class Connections(QueuePool):
    """A pool of connections. Each that is given out has just answered (`pool_pre_ping`).

    `require_writable` is given a connection of the driver's, and raises ReadOnlyError where that can't write.
    """

    require_writable: Callable[[Any], None] | None = None
    is_opened = False  # Until it is, whoever opens it tells what is wrong, and tries again.

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outage = Outage(self._try)

    def connect(self) -> PoolProxiedConnection:
        """A connection. Raises UnavailableError, and what the driver raises where it makes none."""
        self.outage.check()
        try:
            return super().connect()
        except NoConnectionLeft as error:
            raise UnavailableError() from error
        except Exception as error:
            if self.is_opened:
                self.outage.begin(reason_of(error.__cause__ or error))
            raise

    def _try(self) -> None:
        """Ask the database, and whether it can be written."""
        connection = super().connect()
        try:
            if self.require_writable:
                self.require_writable(connection.dbapi_connection)
        except ReadOnlyError:
            connection.invalidate()  # The next may be to another server, which can be written.
            raise
        finally:
            connection.close()
