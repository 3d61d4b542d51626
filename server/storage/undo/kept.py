"""A write that can be taken back: what each of its files held before, and what it left there, as bytes."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from server.storage.journal import Write
from server.storage.links import open_file

LARGEST = 16 * 1024 * 1024  # bytes that the files of a write have held, beyond which it can't be taken back
NO_FILE = ""  # the digest of what is not there


@dataclass(frozen=True, slots=True)
class KeptFile:
    """What a file held before a write, None for no file, and the digest of what the write left there."""

    path: str
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Permit:
    """What the write took: what was done to a document of a type, and whether of its drafts alone."""

    uid: str
    verb: str
    draft: bool


@dataclass(frozen=True, slots=True)
class KeptWrite:
    """A write of a caller."""

    caller: str
    permits: tuple[Permit, ...]
    files: tuple[KeptFile, ...]


def digest(text: str | None) -> str:
    """What tells a text from another; NO_FILE for None."""
    return NO_FILE if text is None else hashlib.sha256(text.encode()).hexdigest()


def files_of(root: Path, writes: Iterable[Write]) -> tuple[KeptFile, ...]:
    """What the files of writes hold, which are still to be made.

    Nothing where that can't be put back in every byte: for media, links, what is no text, and too much of it.
    Raises OSError.
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
        if size > LARGEST:
            return ()
        held = None if before is None else text or ""
        kept.append(KeptFile(write.path, held, digest(None if write.deletes else after or "")))
    return tuple(kept)


def _read(root: Path, write: Write) -> bytes:
    if write.read is not None:
        return write.read
    with open(open_file(root, write.path), "rb") as file:
        return file.read()


def pack(kept: KeptWrite) -> bytes:
    """A kept write as bytes, with their digest in the first line."""
    text = json.dumps(asdict(kept), ensure_ascii=False)
    return f"{digest(text)}\n{text}".encode()


def unpack(data: bytes) -> KeptWrite:
    """A kept write from its bytes. Raises ValueError where they are damaged, or of another version."""
    told, _, text = data.decode().partition("\n")
    if digest(text) != told:
        raise ValueError("a kept write is damaged")
    found = json.loads(text)
    try:
        permits = tuple(Permit(**permit) for permit in found["permits"])
        return KeptWrite(found["caller"], permits, tuple(KeptFile(**file) for file in found["files"]))
    except (KeyError, TypeError) as error:
        raise ValueError("a kept write is of another version") from error
