"""The file of a database in SQLite: where that of the accounts is, and whether it can be used."""

import os
import sqlite3
import weakref
from contextlib import closing
from pathlib import Path

from server.errors import SetupError
from server.paths import keep_private, state_folder


def database_file(root: Path) -> Path:
    """The file with the accounts of the site at `root`, empty where there was none. Raises SetupError."""
    try:
        path = state_folder(root) / "accounts.db"
        path.touch(mode=0o600)
        keep_private(path)
    except OSError as error:
        raise SetupError(
            ".quire", None, f"can't be written: {error.strerror}", "look at its permissions"
        ) from error
    return path


def is_sound(path: Path) -> bool:
    """Whether a file is plainly a database that can be read and written, or still empty.

    False says nothing: only opening the database (`database.opening`) tells what is wrong, if it is.
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
    """The file of an open database, None for one without: whether it is still the one at its path."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        # To close what is opened only by path ends no lock that SQLite holds on the file.
        self._descriptor = os.open(path, getattr(os, "O_PATH", os.O_RDONLY) | os.O_CLOEXEC) if path else -1
        self._closing = weakref.finalize(self, os.close, self._descriptor) if path else None

    def is_there(self) -> bool:
        """Whether nobody has removed the file, or put another in its place."""
        if self._path is None:
            return True
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self._path))
        except OSError:
            return False

    def close(self) -> None:
        """Let go of the file."""
        self._descriptor = -1
        if self._closing:
            self._closing()
