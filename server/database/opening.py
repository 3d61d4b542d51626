"""Factory for database engines: SQLite, or PostgreSQL if the setting `accounts` names it."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import cast

from server.database.address import is_postgres
from server.database.engine import Engine, Tables
from server.database.sqlite import Sqlite


def make_engine(
    url: str,
    prepare: Callable[[], Path],
    tables: Tables,
    size: int,
    name: str = "",
    replaced: Callable[[], None] | None = None,
) -> Engine:
    """Create an engine for tables, with at most `size` connections; it connects on first use.

    `name` is the log's name for a PostgreSQL database. `prepare` and `replaced` are for `Sqlite`. Raises
    ModuleNotFoundError without a driver for PostgreSQL.
    """
    if not is_postgres(url):
        return Sqlite(prepare, tables, size, replaced)
    module = import_module("server.database.postgres")  # docs/packages.py, LAZY
    return cast(Engine, module.Postgres(url, tables, size, name))
