"""Record of imported files, used to detect whether a file was edited in the site after its import."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from server.paths import STATE_FOLDER

PATH = f"{STATE_FOLDER}/imports.json"
_VERSION = 1
_HASH_DIGITS = 32
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class ImportedDigests:
    """Digests of an imported file: of its content in the source, and of the content written to the site."""

    source: str
    file: str


@dataclass(slots=True)
class SourceRecord:
    """The digests of imported files, by path."""

    files: dict[str, ImportedDigests] = field(default_factory=dict)

    def text(self) -> str:
        files = {path: [known.source, known.file] for path, known in sorted(self.files.items())}
        return json.dumps({"version": _VERSION, "files": files}, indent=1, ensure_ascii=False) + "\n"


def read_record(root: Path) -> SourceRecord:
    """Return the record of earlier imports, or an empty record if its file is missing or invalid."""
    try:
        data = json.loads((root / PATH).read_bytes())
        if data["version"] != _VERSION:
            return SourceRecord()
        return SourceRecord(
            {str(path): ImportedDigests(str(s), str(f)) for path, (s, f) in data["files"].items()}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return SourceRecord()


def digest(data: bytes | str) -> str:
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()[:_HASH_DIGITS]


def stream_digest(file: IO[bytes]) -> str:
    found = hashlib.sha256()
    while block := file.read(_CHUNK_BYTES):
        found.update(block)
    return found.hexdigest()[:_HASH_DIGITS]


def file_digest(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return stream_digest(file)
    except FileNotFoundError:
        return None


def digest_of(said: Mapping[str, Any]) -> str:
    return digest(json.dumps(said, default=repr, ensure_ascii=False, sort_keys=True))
