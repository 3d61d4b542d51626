"""Status of the search index. It is stored in a file that all processes can read."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from server.storage.durable import replace_file

STATUS_FILE = "status.json"
SEARCH_FOLDER = "search"  # folder inside .bifolio/
DAMAGED_FILE = "damaged"  # If this file exists, the writer rebuilds the index.


@dataclass(frozen=True, slots=True)
class Status:
    """Status of the search index.

    - `build`: a random name that changes when the index is rebuilt.
    - `shape`: the `texts.shape` digest of the complete index, or "" if the index is incomplete.
    - `numbers`: the number that represents each attribute in the index.
    - `documents`: how many of the `total` versions are indexed.
    - `commits`: how many commits have changed the index.
    """

    version: str
    build: str = ""
    shape: str = ""
    numbers: dict[str, int] = field(default_factory=dict)
    documents: int = 0
    total: int = 0
    pending: int = 0
    commits: int = 0


def read_status(folder: Path) -> Status | None:
    try:
        return Status(**json.loads((folder / STATUS_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_status(folder: Path, status: Status) -> None:
    replace_file(folder / STATUS_FILE, json.dumps(asdict(status)).encode())


def signature(folder: Path) -> object:
    """Return a value that changes whenever the status file changes, or None if the file does not exist."""
    try:
        stat = os.stat(folder / STATUS_FILE)
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns)
