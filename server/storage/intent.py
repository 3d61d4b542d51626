"""The record of intent of a change of several files: what is to be done, so that it can be done again."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Step:
    """One rename or deletion of an intent, with everything that carrying it out again needs."""

    target: str
    staged: str | None
    digest: str | None
    before: Sequence[int] | None


def write_intent(path: Path, steps: list[Step]) -> None:
    """Write the steps to a new file, synced. Raises OSError."""
    body = json.dumps([astuple(step) for step in steps])
    with path.open("x", encoding="utf-8") as file:
        file.write(f"{_digest(body.encode())}\n{body}")
        file.flush()
        os.fsync(file.fileno())


def read_intent(path: Path) -> list[Step] | None:
    """The steps of a record of intent; None where a crash came before it was whole."""
    try:
        digest, _, body = path.read_text(encoding="utf-8").partition("\n")
        if _digest(body.encode()) != digest:
            return None
        return [Step(*step) for step in json.loads(body)]
    except (OSError, ValueError, TypeError):
        return None


def file_digest(path: Path) -> str:
    """The digest of a file's bytes. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
