"""The folder .quire/undo/: a file for each write that can be taken back, for all processes of the site.

A file is named by the hash of the secret id that its caller was given, and kept for an hour at most.
"""

import errno
import hashlib
import os
import secrets
import stat
import time
from contextlib import suppress
from io import BufferedReader
from pathlib import Path

from server.paths import FOLDER, state_folder
from server.storage.durable import make_once
from server.storage.links import opened_folder
from server.storage.undo.kept import KeptWrite, pack, unpack

KEPT_S = 3600  # how long a write can be taken back
MOST = 200  # writes that are kept, and
MOST_BYTES = 64 * 1024 * 1024  # bytes; the oldest go first


class UndoFolder:
    """The writes of the site at `root` that can be taken back."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def keep(self, kept: KeptWrite) -> str:
        """Keep a write; returns its id. Call it under the write lock. Raises OSError."""
        folder = state_folder(self.root) / "undo"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "a link in its place", str(folder))
        data, id_ = pack(kept), secrets.token_urlsafe(24)
        _make_room(folder, len(data))
        make_once(_file(folder, id_), data)
        return id_

    def find(self, id_: str, caller: str) -> KeptWrite | None:
        """A write of a caller, if it is still kept."""
        try:
            with _opened(_file(self.root / FOLDER / "undo", id_)) as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > KEPT_S:
                    return None
                kept = unpack(file.read())
        except (OSError, ValueError):
            return None
        return kept if kept.caller == caller else None

    def forget(self, id_: str) -> None:
        """Keep a write no longer."""
        with suppress(OSError):
            _file(self.root / FOLDER / "undo", id_).unlink()


def _file(folder: Path, id_: str) -> Path:
    return folder / hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


def _opened(path: Path) -> BufferedReader:
    """A file of the folder, open for reading. Raises OSError, also where it is a link, pipe or device."""
    with opened_folder(path.parent) as folder:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path.name, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "no ordinary file", str(path))
    return os.fdopen(descriptor, "rb")


def _make_room(folder: Path, size: int) -> None:
    """Remove what is too old, and the oldest until there is room for one more of a size."""
    found = []
    for path in folder.iterdir():
        with suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime, status.st_size, path))
    oldest, count, total = time.time() - KEPT_S, len(found), size + sum(each[1] for each in found)
    for modified, length, path in sorted(found):
        if modified >= oldest and count < MOST and total <= MOST_BYTES:
            break
        with suppress(OSError):
            path.unlink()
        count, total = count - 1, total - length
