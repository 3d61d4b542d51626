"""Record of intent: the steps of a change, written before its files change, for recovery after a crash."""

import hashlib
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path

from server.storage.files import FileMark, Signature


@dataclass(frozen=True, slots=True)
class Step:
    """One file of a record: its mark before and after, None for no file.

    `aside` is the journal's name for the new file and, after the swap, for the old one. Digests are of the
    bytes in hexadecimal, "" if unknown.
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
    """Write the steps to a new file, with a digest. Raises OSError."""
    body = json.dumps([astuple(step) for step in steps])
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_digest(body.encode())}\n{body}")
        if synced:
            file.flush()
            os.fsync(file.fileno())


def read_intent(path: Path) -> list[Step] | None:
    """Read a record's steps; None if it is incomplete or damaged."""
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
    """One file of a change: its new bytes, a `source` file to use instead, or neither to delete the file.

    `before` is the signature when the file was read, None if it did not exist. `read` are its bytes, None if
    unknown. The file must still match both when it is replaced.
    """

    path: str
    data: bytes | None
    before: Signature | None
    source: Path | None = None
    read: bytes | None = None

    @property
    def deletes(self) -> bool:
        return self.data is None and self.source is None
