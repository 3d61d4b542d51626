"""The path and permissions of SQLite files, and checks for damaged or replaced files."""

import os
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

from server.errors import SetupError
from server.paths import keep_private, state_folder


def private_file(root: Path, name: str) -> Path:
    # Raises OSError.
    path = state_folder(root) / name
    path.touch(mode=0o600)
    keep_private(path)
    return path


def database_file(root: Path) -> Path:
    """Create the file of the accounts database if it is missing, and return its path. Raises SetupError."""
    try:
        path = private_file(root, "accounts.db")
    except OSError as error:
        raise SetupError(
            ".bifolio", None, f"can't be written: {error.strerror}", "check its permissions"
        ) from error
    return path


def is_usable_database(path: Path) -> bool:
    """Return True if a file is empty, or an SQLite database that can be read and written."""
    # A read-only file does not count as usable, although the engine can still read it.
    if not os.access(path, os.R_OK | os.W_OK) or not os.access(path.parent, os.W_OK):
        return False
    try:
        with closing(sqlite3.connect(path, timeout=0)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
            return True
    except sqlite3.Error:
        return False


class OpenedFile:
    """Identity of an opened file. It shows whether the file has been deleted or replaced."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # The open descriptor keeps the inode number from being reused. It is opened with O_PATH, because
        # closing a normal descriptor would release SQLite's locks.
        descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
        self._found = os.fstat(descriptor)
        self._closing = weakref.finalize(self, os.close, descriptor)

    def is_current(self) -> bool:
        try:
            return os.path.samestat(self._found, os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        self._closing()
