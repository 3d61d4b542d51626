"""What was imported before, so that what a person changed since is told from what the source changed.

It is kept in .quire/imports.json: for each file the digest of what the source said, and of the file
as it was written. Without it (a fresh clone) nothing is lost: files that say what the source says are
taken as they are, others are taken for changed by a person.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from server.paths import FOLDER

PATH = f"{FOLDER}/imports.json"
_VERSION = 1
_DIGITS = 32
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class Known:
    """A file of an import: digests of what the source said of it, and of its bytes."""

    source: str
    file: str


@dataclass(slots=True)
class Record:
    """The files of earlier imports by path; `text` is what to keep of them."""

    files: dict[str, Known] = field(default_factory=dict)

    def text(self) -> str:
        """The record as its file has it."""
        files = {path: [known.source, known.file] for path, known in sorted(self.files.items())}
        return json.dumps({"version": _VERSION, "files": files}, indent=1, ensure_ascii=False) + "\n"


def read_record(root: Path) -> Record:
    """The record of a site; an empty one where there is none, or none that can be read."""
    try:
        data = json.loads((root / PATH).read_bytes())
        if data["version"] != _VERSION:
            return Record()
        return Record({str(path): Known(str(s), str(f)) for path, (s, f) in data["files"].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return Record()


def digest(data: bytes | str) -> str:
    """A short digest of bytes or text."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:_DIGITS]


def stream_digest(file: IO[bytes]) -> str:
    """The digest of everything that is still to be read of a file."""
    found = hashlib.sha256()
    while block := file.read(_BLOCK):
        found.update(block)
    return found.hexdigest()[:_DIGITS]


def file_digest(path: Path) -> str | None:
    """The digest of a file's bytes; None where there is no file."""
    try:
        with path.open("rb") as file:
            return stream_digest(file)
    except FileNotFoundError:
        return None


def digest_of(said: Mapping[str, Any]) -> str:
    """The digest of what a source says."""
    return digest(json.dumps(said, default=repr, ensure_ascii=False, sort_keys=True))
