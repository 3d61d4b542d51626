"""Storage for undo: the old contents of recently changed files."""

import errno
import hashlib
import json
import os
import secrets
import shutil
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from io import BufferedReader
from pathlib import Path

from server.paths import STATE_FOLDER, UPLOADS, state_folder
from server.storage.durable import create_private_file
from server.storage.intent import Write
from server.storage.links import open_file, open_folder
from server.storage.media import SIDECAR_SUFFIX

# --- stored writes --------------------------------------------------------------------------------

MAX_WRITE_BYTES = 16 * 1024 * 1024  # A write that replaces more bytes of text can't be undone.
MAX_MEDIA_BYTES = 256 * 1024 * 1024  # The same for media files.
NO_FILE_DIGEST = ""


@dataclass(frozen=True, slots=True)
class UndoableFile:
    """Changed file. `after` is the digest of its new bytes, and `claim` describes the document in it.

    `before` is the old text, or None for a new file or a media file. For a replaced media file, `copy` is the
    name of its saved copy.
    """

    path: str
    before: str | None
    after: str
    copy: str = ""
    claim: str | None = None


@dataclass(frozen=True, slots=True)
class Permit:
    """A permission that is needed for a write and for its undo, such as `update` for articles."""

    uid: str
    verb: str
    draft: bool  # The permission is needed only for drafts.


@dataclass(frozen=True, slots=True)
class UndoableWrite:
    """A write that can be undone, and the permissions that its undo needs."""

    caller: str
    permits: tuple[Permit, ...]
    files: tuple[UndoableFile, ...]


def digest(text: str | None) -> str:
    return NO_FILE_DIGEST if text is None else hashlib.sha256(text.encode()).hexdigest()


def digest_of_file(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_undoable_files(
    root: Path, writes: Iterable[Write], copies: "MediaCopies"
) -> tuple[UndoableFile, ...]:
    """Return the old versions of the files that `writes` will change. Raises OSError.

    Media files are copied with `copies`. Return () if one of the files can't be restored later, for example
    because it is too large.
    """
    kept, size = [], 0
    for write in writes:
        if (root / write.path).is_symlink():
            return ()
        if is_media(write.path):
            if not copies.has_room_for(write):
                return ()
            new = digest_of_file(write.source) if write.source else NO_FILE_DIGEST
            kept.append(UndoableFile(write.path, None, new, copies.make(write) if write.before else ""))
            continue
        before = _read(root, write) if write.before else None
        size += len(before or b"")
        try:
            text, after = before and before.decode(), _new(write).decode()
        except UnicodeDecodeError:
            return ()
        if size > MAX_WRITE_BYTES:
            return ()
        held = None if before is None else text or ""
        kept.append(UndoableFile(write.path, held, digest(None if write.deletes else after or "")))
    return tuple(kept)


def is_media(path: str) -> bool:
    return path.startswith(f"{UPLOADS}/") and not path.endswith(SIDECAR_SUFFIX)


def _new(write: Write) -> bytes:
    return write.data or (write.source.read_bytes() if write.source else b"")


def _read(root: Path, write: Write) -> bytes:
    if write.read is not None:
        return write.read
    with open(open_file(root, write.path), "rb") as file:
        return file.read()


def pack(write: UndoableWrite) -> bytes:
    text = json.dumps(asdict(write), ensure_ascii=False)
    return f"{digest(text)}\n{text}".encode()


def unpack(data: bytes) -> UndoableWrite:
    """Deserialize a write. Raises ValueError if it is damaged or was stored by another version of Bifolio."""
    expected, _, text = data.decode().partition("\n")
    if digest(text) != expected:
        raise ValueError("a saved write is damaged")
    values = json.loads(text)
    try:
        permits = tuple(Permit(**permit) for permit in values["permits"])
        return UndoableWrite(
            values["caller"], permits, tuple(UndoableFile(**file) for file in values["files"])
        )
    except (KeyError, TypeError) as error:
        raise ValueError("a saved write has another version") from error


# --- folder ---------------------------------------------------------------------------------------

RETENTION_S = 3600  # A write can be undone for this long.
# If the number of writes or their total size in bytes exceeds its limit, the oldest writes are deleted.
MAX_WRITES = 200
MAX_BYTES = 64 * 1024 * 1024
MAX_COPIED_BYTES = 1024 * 1024 * 1024  # the limit for the copies of media files


class UndoFolder:
    """Folder of a site's undoable writes."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def keep(self, write: UndoableWrite) -> str:
        """Store a write, and return its id. The caller must hold the write lock. Raises OSError."""
        folder = undo_folder(self.root)
        data, id_ = pack(write), secrets.token_urlsafe(24)
        _make_room(folder, len(data), {file.copy for file in write.files if file.copy})
        create_private_file(_file(folder, id_), data)
        return id_

    def find(self, id_: str, caller: str) -> UndoableWrite | None:
        try:
            with _open(_file(self.root / STATE_FOLDER / "undo", id_)) as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > RETENTION_S:
                    return None
                write = unpack(file.read())
        except (OSError, ValueError):
            return None
        return write if write.caller == caller else None

    def copy_of(self, file: UndoableFile) -> Path:
        return self.root / STATE_FOLDER / "undo" / file.copy

    def forget(self, id_: str) -> None:
        folder = self.root / STATE_FOLDER / "undo"
        with suppress(OSError):
            _delete(folder, _file(folder, id_))


def undo_folder(root: Path) -> Path:
    folder = state_folder(root) / "undo"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "a symbolic link in its place", str(folder))
    return folder


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


def _copies_of(record: Path) -> tuple[str, ...]:
    try:
        return tuple(file.copy for file in unpack(record.read_bytes()).files if file.copy)
    except ValueError:
        return ()


def _delete(folder: Path, record: Path) -> None:
    names = _copies_of(record)
    record.unlink()
    for name in names:
        (folder / name).unlink(missing_ok=True)


def _make_room(folder: Path, size: int, new_copies: Collection[str]) -> None:
    """Delete writes older than RETENTION_S. If the folder exceeds a limit, delete the oldest writes too.

    The new write, which has `size` bytes, and its `new_copies` count towards the limits.
    """
    records, copied = [], {name: (folder / name).stat().st_size for name in new_copies}
    known = set(new_copies)
    for path in folder.iterdir():
        if path.suffix == COPY_SUFFIX:
            continue
        with suppress(OSError):
            status, names = path.stat(), _copies_of(path)
            known.update(names)
            bytes_ = sum((folder / name).stat().st_size for name in names)
            records.append((status.st_mtime, status.st_size, bytes_, path))
    oldest, count = time.time() - RETENTION_S, len(records)
    total = size + sum(each[1] for each in records)
    total_copied = sum(copied.values()) + sum(each[2] for each in records)
    for modified, length, bytes_, path in sorted(records):
        is_small = total <= MAX_BYTES and total_copied <= MAX_COPIED_BYTES
        if modified >= oldest and count < MAX_WRITES and is_small:
            break
        with suppress(OSError):
            _delete(folder, path)
        count, total, total_copied = count - 1, total - length, total_copied - bytes_
    # A process that was killed can leave copies to which no stored write belongs.
    for path in folder.glob(f"*{COPY_SUFFIX}"):
        if path.name not in known:
            path.unlink(missing_ok=True)


COPY_SUFFIX = ".copy"


class MediaCopies:
    """Copies of media files that a write will replace."""

    def __init__(self, root: Path) -> None:
        self._root, self._names, self._bytes = root, list[str](), 0

    def has_room_for(self, write: Write) -> bool:
        if write.before is None:
            return True
        self._bytes += os.stat(self._root / write.path).st_size
        return self._bytes <= MAX_MEDIA_BYTES

    def make(self, write: Write) -> str:
        """Copy the file that `write` will replace, and return the copy's name. Raises OSError."""
        folder = undo_folder(self._root)
        name = f"{secrets.token_hex(16)}{COPY_SUFFIX}"
        self._names.append(name)
        with (
            open(open_file(self._root, write.path), "rb") as source,
            open(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target,
        ):
            shutil.copyfileobj(source, target)
        return name

    def delete(self) -> None:
        for name in self._names:
            with suppress(OSError):
                (self._root / STATE_FOLDER / "undo" / name).unlink()


# --- recorder -------------------------------------------------------------------------------------


class UndoRecorder:
    """Recorder that saves the old files of a write, for undo."""

    def __init__(
        self, root: Path, caller: str, permits: Collection[Permit], claim: Callable[[str], str]
    ) -> None:
        """Prepare to record a write. `claim` returns a description of the document at a path."""
        self._folder, self._caller, self._permits = UndoFolder(root), caller, tuple(permits)
        self._claim = claim
        # The id stays "" if the write can't be undone. `texts` contains paths, old texts and new texts.
        self.id, self.texts = "", list[tuple[str, str | None, str | None]]()
        self.expires = datetime.now(UTC) + timedelta(seconds=RETENTION_S)

    @contextmanager
    def recording(self, writes: Collection[Write]) -> Iterator[None]:
        """Run a block that applies `writes`, and store the old versions of the files for undo.

        If storing them fails, the block still runs, but the write can't be undone.
        """
        files: tuple[UndoableFile, ...] = ()
        copies = MediaCopies(self._folder.root)
        try:
            with suppress(OSError):
                files = read_undoable_files(self._folder.root, writes, copies)
            yield
            if files:
                files = tuple(replace(file, claim=self._claim(file.path)) for file in files)
                with suppress(OSError):
                    self.id = self._folder.keep(UndoableWrite(self._caller, self._permits, files))
                    after = {write.path: write.data.decode() for write in writes if write.data is not None}
                    self.texts = [
                        (f.path, f.before, after.get(f.path)) for f in files if not is_media(f.path)
                    ]
        finally:
            if not self.id:
                copies.delete()
