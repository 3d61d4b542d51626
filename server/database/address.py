"""Location of a site's databases. The setting `accounts` contains this location as a URL."""

import re
from importlib.util import find_spec
from pathlib import Path

from server.config.model import FILE
from server.errors import SetupError


def is_server(url: str) -> bool:
    """Whether accounts are stored in a database server, which can be slow, not in a file."""
    return bool(url) and not url.startswith("sqlite")


def is_postgres(url: str) -> bool:
    """Whether accounts and the event log are stored in PostgreSQL."""
    return url.startswith("postgresql")


def file_of(url: str) -> Path:
    """Return the path in a URL such as `sqlite:///path`. Raises ValueError for any other URL."""
    match = re.fullmatch(r"sqlite(?:\+\w+)?:///([^?]+)", url)
    if match is None:
        raise ValueError("the URL must be postgresql://… or sqlite:///PATH")
    return Path(match[1])


def require_driver(url: str) -> None:
    """Raise SetupError if accounts are stored in PostgreSQL but the package psycopg is not installed."""
    if is_postgres(url) and find_spec("psycopg") is None:
        message = "the accounts database requires the Python library psycopg, which is not installed"
        raise SetupError(FILE, None, message, "run `pip install 'bifolio[postgres]'`")
