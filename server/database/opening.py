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
    size: int,
    name: str = "",
    replaced: Callable[[], None] | None = None,
) -> Engine:
    """Create a database engine. Raises ModuleNotFoundError if the PostgreSQL driver is not installed."""
    if not is_postgres(url):
        return Sqlite(prepare, tables, size, replaced)
    module = import_module("server.database.postgres")  # a lazy import (docs/packages.py)
    return cast(Engine, module.Postgres(url, tables, size, name))
