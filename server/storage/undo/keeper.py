"""Keeps what one write replaces, around the write itself."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from server.storage.journal import Write
from server.storage.undo.folder import KEPT_S, UndoFolder
from server.storage.undo.kept import KeptFile, KeptWrite, Permit, files_of


class Keeper:
    """Keeps one write of a caller. `id` is "" until it is made, and where it can't be taken back."""

    def __init__(self, root: Path, caller: str, permits: Collection[Permit]) -> None:
        self._folder, self._caller, self._permits = UndoFolder(root), caller, tuple(permits)
        self.id = ""
        self.expires = datetime.now(UTC) + timedelta(seconds=KEPT_S)

    @contextmanager
    def keeping(self, writes: Collection[Write]) -> Iterator[None]:
        """Keep what some writes replace that are made in the block. That it can't be kept stops none."""
        files: tuple[KeptFile, ...] = ()
        with suppress(OSError):
            files = files_of(self._folder.root, writes)
        yield
        if files:
            with suppress(OSError):
                self.id = self._folder.keep(KeptWrite(self._caller, self._permits, files))
