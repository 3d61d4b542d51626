"""Factory for database engines."""

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
    pool_size: int,
    name: str = "",
    on_replaced: Callable[[], None] | None = None,
) -> Engine:
    """Create an engine for the database at `url`.

    `prepare` returns the path of the SQLite file. `on_replaced` is called when a damaged file has been
    replaced. Raises ModuleNotFoundError if the driver for PostgreSQL is missing.
    """
    if not is_postgres(url):
        return Sqlite(prepare, tables, pool_size, on_replaced)
    module = import_module("server.database.postgres")  # a lazy import (docs/packages.py)
    return cast(Engine, module.Postgres(url, tables, pool_size, name))
