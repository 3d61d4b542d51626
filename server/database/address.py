"""The `accounts` setting: the URL of a site's databases."""

import re
from importlib.util import find_spec
from pathlib import Path

from server.config.model import FILE
from server.errors import SetupError


def is_server(url: str) -> bool:
    # A database server may respond slowly, but a file does not.
    return bool(url) and not url.startswith("sqlite")


def is_postgres(url: str) -> bool:
    return url.startswith("postgresql")


def sqlite_path(url: str) -> Path:
    """Return the path in an SQLite URL. Raises ValueError for any other URL."""
    match = re.fullmatch(r"sqlite(?:\+\w+)?:///([^?]+)", url)
    if match is None:
        raise ValueError("the URL must be postgresql://… or sqlite:///PATH")
    return Path(match[1])


def require_driver(url: str) -> None:
    # Raises SetupError.
    if is_postgres(url) and find_spec("psycopg") is None:
        message = "the accounts database requires the Python library psycopg, which is not installed"
        raise SetupError(FILE, None, message, "run `pip install 'bifolio[postgres]'`")
