"""Opens a database in a file, or in PostgreSQL where the setting `accounts` says so."""

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
    """An engine for some tables with `size` connections at most, which connects when it is used.

    `name` is what the log calls a database in PostgreSQL. Where it is in a file, `prepare` and `replaced` are
    those of `Sqlite`. Raises ModuleNotFoundError where PostgreSQL has no driver.
    """
    if not is_postgres(url):
        return Sqlite(prepare, tables, size, replaced)
    module = import_module("server.database.postgres")  # docs/packages.py, LAZY
    return cast(Engine, module.Postgres(url, tables, size, name))
