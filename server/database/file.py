"""SQLite files: their paths and permissions, and a check for damaged files."""

import os
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

from server.errors import SetupError
from server.paths import keep_private, state_folder


def private_file(root: Path, name: str) -> Path:
    """Return the path of a file in `.bifolio/` that only its owner can read. A missing file is created.

    Raises OSError.
    """
    path = state_folder(root) / name
    path.touch(mode=0o600)
    keep_private(path)
    return path


def database_file(root: Path) -> Path:
    """Return the path of the file with the accounts database.

    A missing file is created. Raises SetupError.
    """
    try:
        path = private_file(root, "accounts.db")
    except OSError as error:
        raise SetupError(
            ".bifolio", None, f"can't be written: {error.strerror}", "check its permissions"
        ) from error
    return path


def is_sound(path: Path) -> bool:
    """Whether a file is empty, or is a database that can be read and written.

    Even if this returns False, the engine may be able to use the database, for example read-only. If not, the
    engine reports the error when it opens the database.
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
    """Identity of a database file that was opened. With it, the server detects that the file was removed or
    replaced later.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        # While this descriptor is open, no other file gets the same inode number. It must be opened with
        # O_PATH, because closing a normal descriptor for the file would release SQLite's locks.
        descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC)
        self._found = os.fstat(descriptor)
        self._closing = weakref.finalize(self, os.close, descriptor)

    def is_there(self) -> bool:
        """Whether the file that was opened is still at its path and has not been replaced by another file."""
        try:
            return os.path.samestat(self._found, os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        self._closing()
