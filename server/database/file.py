"""SQLite files: paths, permissions, and checks."""

import os
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

from server.errors import SetupError
from server.paths import keep_private, state_folder


def private_file(root: Path, name: str) -> Path:
    """Create a private file in `.bifolio/` if missing; return its path. Raises OSError."""
    path = state_folder(root) / name
    path.touch(mode=0o600)
    keep_private(path)
    return path


def database_file(root: Path) -> Path:
    """Return the path of the site's accounts, creating the file if missing. Raises SetupError."""
    try:
        path = private_file(root, "accounts.db")
    except OSError as error:
        raise SetupError(
            ".bifolio", None, f"can't be written: {error.strerror}", "check its permissions"
        ) from error
    return path


def is_sound(path: Path) -> bool:
    """Whether a file is a readable and writable database, or empty.

    False is not certain: opening the database (`database.opening`) shows what is wrong, if anything.
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
    """The file of an open database, to detect that it was removed or replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # An open descriptor reserves the inode number. Closing one opened with O_PATH does not release
        # SQLite's locks.
        descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
        self._found = os.fstat(descriptor)
        self._closing = weakref.finalize(self, os.close, descriptor)

    def is_there(self) -> bool:
        """Whether the file is still at its path."""
        try:
            return os.path.samestat(self._found, os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        self._closing()
