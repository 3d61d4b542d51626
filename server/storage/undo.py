"""Undo storage: old contents of recently changed files, in .bifolio/undo/."""

import errno
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path

from server.paths import STATE_FOLDER, state_folder
from server.storage.durable import make_once
from server.storage.intent import Write
from server.storage.links import open_file, open_folder

# --- stored writes --------------------------------------------------------------------------------

MAX_WRITE_BYTES = 16 * 1024 * 1024  # A write that replaces more bytes can't be undone.
NO_FILE_DIGEST = ""


@dataclass(frozen=True, slots=True)
class KeptFile:
    """A file that a write changed: its old text, and the digest of its new text."""

    path: str
    before: str | None  # None if the file did not exist
    after: str


@dataclass(frozen=True, slots=True)
class Permit:
    """A permission that both a write and its undo require, such as the permission to update articles."""

    uid: str
    verb: str
    draft: bool  # The permission is needed only for drafts.


@dataclass(frozen=True, slots=True)
class KeptWrite:
    """An undoable write: its caller, the required permissions, and the changed files."""

    caller: str
    permits: tuple[Permit, ...]
    files: tuple[KeptFile, ...]


def digest(text: str | None) -> str:
    return NO_FILE_DIGEST if text is None else hashlib.sha256(text.encode()).hexdigest()


def files_of(root: Path, writes: Iterable[Write]) -> tuple[KeptFile, ...]:
    """Return the old contents of the files that `writes` will change.

    Return () if an undo could not restore all of them, for example because a file is too large. Raises
    OSError.
    """
    kept, size = [], 0
    for write in writes:
        if write.source is not None or (root / write.path).is_symlink():
            return ()
        before = _read(root, write) if write.before else None
        size += len(before or b"")
        try:
            text, after = before and before.decode(), write.data and write.data.decode()
        except UnicodeDecodeError:
            return ()
        if size > MAX_WRITE_BYTES:
            return ()
        held = None if before is None else text or ""
        kept.append(KeptFile(write.path, held, digest(None if write.deletes else after or "")))
    return tuple(kept)


def _read(root: Path, write: Write) -> bytes:
    if write.read is not None:
        return write.read
    with open(open_file(root, write.path), "rb") as file:
        return file.read()


def pack(write: KeptWrite) -> bytes:
    text = json.dumps(asdict(write), ensure_ascii=False)
    return f"{digest(text)}\n{text}".encode()


def unpack(data: bytes) -> KeptWrite:
    """Deserialize a write.

    Raises ValueError if the data is damaged or was stored by another version of Bifolio.
    """
    expected, _, text = data.decode().partition("\n")
    if digest(text) != expected:
        raise ValueError("a saved write is damaged")
    values = json.loads(text)
    try:
        permits = tuple(Permit(**permit) for permit in values["permits"])
        return KeptWrite(values["caller"], permits, tuple(KeptFile(**file) for file in values["files"]))
    except (KeyError, TypeError) as error:
        raise ValueError("a saved write has another version") from error


# --- folder ---------------------------------------------------------------------------------------

RETENTION_S = 3600  # A write can be undone for this long.
# If the number of writes or their total size in bytes exceeds its limit, the oldest writes are deleted.
MAX_WRITES = 200
MAX_BYTES = 64 * 1024 * 1024


class UndoFolder:
    """Folder with the undoable writes to the site at `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def keep(self, write: KeptWrite) -> str:
        """Store a write, and return its id. Requires the site's write lock. Raises OSError."""
        folder = state_folder(self.root) / "undo"
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink():
            raise OSError(errno.ELOOP, "a symbolic link in its place", str(folder))
        data, id_ = pack(write), secrets.token_urlsafe(24)
        _make_room(folder, len(data))
        make_once(_file(folder, id_), data)
        return id_

    def find(self, id_: str, caller: str) -> KeptWrite | None:
        try:
            with _open(_file(self.root / STATE_FOLDER / "undo", id_)) as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > RETENTION_S:
                    return None
                write = unpack(file.read())
        except (OSError, ValueError):
            return None
        return write if write.caller == caller else None

    def forget(self, id_: str) -> None:
        with suppress(OSError):
            _file(self.root / STATE_FOLDER / "undo", id_).unlink()


def _file(folder: Path, id_: str) -> Path:
    return folder / hashlib.sha256(id_.encode("utf-8", "surrogatepass")).hexdigest()


def _open(path: Path) -> BufferedReader:
    with open_folder(path.parent) as folder:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path.name, flags, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "not a regular file", str(path))
    return os.fdopen(descriptor, "rb")


def _make_room(folder: Path, size: int) -> None:
    files = []
    for path in folder.iterdir():
        with suppress(OSError):
            status = path.stat()
            files.append((status.st_mtime, status.st_size, path))
    oldest, count, total = time.time() - RETENTION_S, len(files), size + sum(each[1] for each in files)
    for modified, length, path in sorted(files):
        if modified >= oldest and count < MAX_WRITES and total <= MAX_BYTES:
            break
        with suppress(OSError):
            path.unlink()
        count, total = count - 1, total - length


# --- recorder -------------------------------------------------------------------------------------


class Keeper:
    """Recorder that stores one write for undo."""

    def __init__(self, root: Path, caller: str, permits: Collection[Permit]) -> None:
        self._folder, self._caller, self._permits = UndoFolder(root), caller, tuple(permits)
        # The id stays "" if the write can't be undone. `texts` contains paths, old texts and new texts.
        self.id, self.texts = "", list[tuple[str, str | None, str | None]]()
        self.expires = datetime.now(UTC) + timedelta(seconds=RETENTION_S)

    @contextmanager
    def keeping(self, writes: Collection[Write]) -> Iterator[None]:
        """Context manager that stores the old contents of the files that the block changes, for undo.

        If storing them fails, the write still succeeds, but can't be undone.
        """
        files: tuple[KeptFile, ...] = ()
        with suppress(OSError):
            files = files_of(self._folder.root, writes)
        yield
        if files:
            with suppress(OSError):
                self.id = self._folder.keep(KeptWrite(self._caller, self._permits, files))
                after = {write.path: write.data.decode() for write in writes if write.data is not None}
                self.texts = [(file.path, file.before, after.get(file.path)) for file in files]
