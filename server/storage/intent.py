"""Record of a write's changes, used to finish or revert the write after a crash."""

import hashlib
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path

from server.storage.files import FileMark, Signature


@dataclass(frozen=True, slots=True)
class Step:
    """Change to one file.

    `before` and `after` are the marks of the old and the new file, or None if that file does not exist. The
    change swaps the two files. Afterwards, the old file has the name `journal_name` in the journal. A digest
    is "" if it is unknown.
    """

    target: str
    journal_name: str
    before: FileMark | None
    after: FileMark | None
    before_digest: str = ""
    after_digest: str = ""

    def reversed(self) -> "Step":
        return Step(
            self.target, self.journal_name, self.after, self.before, self.after_digest, self.before_digest
        )


def write_intent(path: Path, steps: list[Step], *, synced: bool) -> None:
    """Write a record, synced to disk if `synced` is set. Raises OSError."""
    body = json.dumps([astuple(step) for step in steps])
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_digest(body.encode())}\n{body}")
        if synced:
            file.flush()
            os.fsync(file.fileno())


def read_intent(path: Path) -> list[Step] | None:
    """Return the steps in a record, or None if the record can't be read or is damaged."""
    try:
        digest, _, body = path.read_text(encoding="utf-8").partition("\n")
        if _digest(body.encode()) != digest:
            return None
        return [
            Step(target, str(journal_name), _mark(before), _mark(after), *digests)
            for target, journal_name, before, after, *digests in json.loads(body)
        ]
    except (OSError, ValueError, TypeError):
        return None


def _mark(numbers: list[int] | None) -> FileMark | None:
    return (numbers[0], numbers[1], numbers[2]) if numbers else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Write:
    """New bytes for a file: `data`, or the bytes of the file `source`. If both are None, the file is deleted.

    `source_size` is the size of `source` in bytes, or 0 if it is unknown.

    The write fails if the file no longer has the signature `before` or, if `read` is set, the bytes `read`.
    """

    path: str
    data: bytes | None
    before: Signature | None  # None for a new file
    source: Path | None = None
    read: bytes | None = None  # None if unknown
    source_size: int = 0

    @property
    def deletes(self) -> bool:
        return self.data is None and self.source is None
