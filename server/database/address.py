"""Where the setting `accounts` says that the databases of a site are: in files, or in PostgreSQL."""

import re
from importlib.util import find_spec
from pathlib import Path

from server.config.model import FILE
from server.errors import SetupError


def is_server(url: str) -> bool:
    """Whether accounts are in a database elsewhere, which may take long to answer, and not in a file."""
    return bool(url) and not url.startswith("sqlite")


def is_postgres(url: str) -> bool:
    """Whether accounts are in PostgreSQL, as is the log of events then."""
    return url.startswith("postgresql")


def file_of(url: str) -> Path:
    """The file of SQLite at `sqlite:///path`. Raises ValueError for an address of no database known here."""
    found = re.fullmatch(r"sqlite(?:\+\w+)?:///([^?]+)", url)
    if found is None:
        raise ValueError("it must be at postgresql://…, or at sqlite:/// and a path")
    return Path(found[1])


def require_driver(url: str) -> None:
    """Raise SetupError where accounts are in PostgreSQL, and psycopg is not installed."""
    if is_postgres(url) and find_spec("psycopg") is None:
        message = "the accounts database has no driver: psycopg is not installed"
        raise SetupError(FILE, None, message, "pip install 'bifolio[postgres]'")
