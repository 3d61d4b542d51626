"""Record of intent: the list of file changes that one write is about to make. It is stored before the first
file is changed.

After a crash, recovery uses the record to finish the write or roll it back.
"""

import hashlib
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path

from server.storage.files import FileMark, Signature


@dataclass(frozen=True, slots=True)
class Step:
    """One file in a record of intent. `target` is the file's path, relative to the site.

    `before` and `after` are the file's marks (mtime, size, inode) before and after the write. A mark is None
    if there is no file at that time. `aside` is the name of a file in the journal folder. It contains the new
    file before the swap, and the old file after the swap. The digests of both contents are hexadecimal, or ""
    if unknown.
    """

    target: str
    aside: str
    before: FileMark | None
    after: FileMark | None
    before_digest: str = ""
    after_digest: str = ""

    def reversed(self) -> "Step":
        return Step(self.target, self.aside, self.after, self.before, self.after_digest, self.before_digest)


def write_intent(path: Path, steps: list[Step], *, synced: bool) -> None:
    """Write a record of intent, which consists of the steps and their digest, to a new file. Raises OSError.

    If `synced` is set, wait until the file is on disk.
    """
    body = json.dumps([astuple(step) for step in steps])
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_digest(body.encode())}\n{body}")
        if synced:
            file.flush()
            os.fsync(file.fileno())


def read_intent(path: Path) -> list[Step] | None:
    """Return the steps in a record of intent. Return None if the record is incomplete or damaged."""
    try:
        digest, _, body = path.read_text(encoding="utf-8").partition("\n")
        if _digest(body.encode()) != digest:
            return None
        return [
            Step(target, str(aside), _mark(before), _mark(after), *digests)
            for target, aside, before, after, *digests in json.loads(body)
        ]
    except (OSError, ValueError, TypeError):
        return None


def _mark(numbers: list[int] | None) -> FileMark | None:
    return (numbers[0], numbers[1], numbers[2]) if numbers else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Write:
    """A new content for one file: either `data` or the content of the file `source`.

    If both are None, the file is deleted. `before` is the signature that the file had when it was read, or
    None if it did not exist. `read` is the content that was read, or None if that is unknown. When the file
    is replaced, its signature and content must still be the same.
    """

    path: str
    data: bytes | None
    before: Signature | None
    source: Path | None = None
    read: bytes | None = None

    @property
    def deletes(self) -> bool:
        return self.data is None and self.source is None
