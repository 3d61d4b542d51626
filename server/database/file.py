"""Files of SQLite databases: the path of the accounts, and whether a file can be used."""

import os
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

from server.errors import SetupError
from server.paths import keep_private, state_folder


def private_file(root: Path, name: str) -> Path:
    """A file in `.bifolio/` that only its owner may read, empty where there was none. Raises OSError."""
    path = state_folder(root) / name
    path.touch(mode=0o600)
    keep_private(path)
    return path


def database_file(root: Path) -> Path:
    """The file with the accounts of the site at `root`, empty where there was none. Raises SetupError."""
    try:
        path = private_file(root, "accounts.db")
    except OSError as error:
        raise SetupError(
            ".bifolio", None, f"can't be written: {error.strerror}", "look at its permissions"
        ) from error
    return path


def is_sound(path: Path) -> bool:
    """Whether a file is plainly a database that can be read and written, or still empty.

    False proves nothing: only opening the database (`database.opening`) shows what is wrong, if anything.
    """
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK):
        return False
    try:
        with closing(sqlite3.connect(path, timeout=0)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return True
    except sqlite3.Error:
        return False


class OpenedFile:
    """The file of an open database: whether it is still the one at its path."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Closing an O_PATH descriptor releases no lock of SQLite. While it is open, no other file gets the
        # same inode number.
        descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
        self._found = os.fstat(descriptor)
        self._closing = weakref.finalize(self, os.close, descriptor)

    def is_there(self) -> bool:
        """Return whether the file is still at its path, neither removed nor replaced."""
        try:
            return os.path.samestat(self._found, os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        """Close the file."""
        self._closing()
