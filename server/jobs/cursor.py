"""The position of a job that has no database of its own, in a file that survives a kill and a power cut."""

import os
from contextlib import suppress
from pathlib import Path

from server.paths import state_folder
from server.storage.durable import stage, sync_folder

FOLDER = "jobs"  # in .quire/


class Cursor:
    """A short text of one job, which only the process that runs the job may move.

    Move it after the work: then a killed job does some work again, and leaves out none.
    """

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name

    def read(self) -> str:
        """Return the position; "" if there is none yet. Raises OSError."""
        try:
            return (state_folder(self._root) / FOLDER / self._name).read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def move(self, position: str) -> None:
        """Replace the position in one step. Raises OSError, and leaves the one before then."""
        folder = state_folder(self._root) / FOLDER
        folder.mkdir(mode=0o700, exist_ok=True)
        temporary = folder / f".{self._name}.new"
        temporary.unlink(missing_ok=True)  # left by a process that was killed
        stage(position.encode(), temporary, 0o600)
        try:
            os.replace(temporary, folder / self._name)
        except OSError:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        sync_folder(folder)
