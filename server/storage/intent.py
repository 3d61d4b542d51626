"""The record of intent of a change: what is to be done to its files, so that it can be done again."""

import hashlib
import json
import os
from dataclasses import astuple, dataclass
from pathlib import Path

from server.storage.files import FileMark, Signature


@dataclass(frozen=True, slots=True)
class Step:
    """One file of an intent: what is there (`before`) and is to be (`after`), None for no file.

    `aside` is the name in the journal of the new file and, once that is in place, of the one before. The
    digests are those of their bytes, in hexadecimal, "" where the bytes are not known.
    """

    target: str
    aside: str
    before: FileMark | None
    after: FileMark | None
    before_digest: str = ""
    after_digest: str = ""

    def reversed(self) -> "Step":
        """The step that takes this one back."""
        return Step(self.target, self.aside, self.after, self.before, self.after_digest, self.before_digest)


def write_intent(path: Path, steps: list[Step], *, synced: bool) -> None:
    """Write the steps to a new file. Raises OSError."""
    body = json.dumps([astuple(step) for step in steps])
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_digest(body.encode())}\n{body}")
        if synced:
            file.flush()
            os.fsync(file.fileno())


def read_intent(path: Path) -> list[Step] | None:
    """The steps of a record of intent; None where a crash came before it was whole."""
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


def _mark(found: list[int] | None) -> FileMark | None:
    return (found[0], found[1], found[2]) if found else None


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Write:
    """One file of a change: its new bytes, or the file `source` that becomes it, or neither to delete it.

    `before` is the signature that the file had when it was read, None where there was none, and `read` the
    bytes, None where they were not: it must still be so when the file is replaced.
    """

    path: str
    data: bytes | None
    before: Signature | None
    source: Path | None = None
    read: bytes | None = None

    @property
    def deletes(self) -> bool:
        """Whether the file is to be gone."""
        return self.data is None and self.source is None
