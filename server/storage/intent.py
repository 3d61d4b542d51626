"""Record of intent: the file changes that a write is about to make. After a crash, recovery uses it to finish
the write or roll it back.
"""

import hashlib
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path

from server.storage.files import FileMark, Signature


@dataclass(frozen=True, slots=True)
class Step:
    """One file in a record of intent.

    `before` and `after` are its marks before and after the write, or None for no file. `aside` names a
    journal file: the new file before the swap, and the old file after it. Digests are hexadecimal, or "" if
    unknown.
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
    """Write a record of intent to a new file. Raises OSError.

    If `synced` is set, wait until it is on disk.
    """
    body = json.dumps([astuple(step) for step in steps])
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_digest(body.encode())}\n{body}")
        if synced:
            file.flush()
            os.fsync(file.fileno())


def read_intent(path: Path) -> list[Step] | None:
    """Return the steps in a record of intent, or None if it is incomplete or damaged."""
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
    """New content for one file: `data`, the content of `source`, or neither to delete the file.

    `before` and `read` are the file's signature and content when it was read. Both must be unchanged when the
    file is replaced.
    """

    path: str
    data: bytes | None
    before: Signature | None
    source: Path | None = None
    read: bytes | None = None

    @property
    def deletes(self) -> bool:
        return self.data is None and self.source is None
