"""Status of the search index: a small file in its folder that all processes read."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from server.storage.durable import replace_file

STATUS_FILE = "status.json"
SEARCH_FOLDER = "search"  # in .bifolio/
DAMAGED_FILE = "damaged"  # If this file exists, the writer rebuilds the index.


@dataclass(frozen=True, slots=True)
class Status:
    """The index's status.

    - `version`: the index format and the version of whoosh.
    - `build`: a random name for this index.
    - `shape`: the site's shape (`texts.shape`) when the index was last complete, or "".
    - `numbers`: the number of each attribute.
    - `documents`: the number of indexed versions.
    - `total`: the number of versions in the site.
    - `pending`: the number of versions that have changed but are not indexed yet.
    - `commits`: the number of changes that were made visible to readers.
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
    """Return the status of the index in a folder, or None if it can't be read."""
    try:
        return Status(**json.loads((folder / STATUS_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_status(folder: Path, status: Status) -> None:
    """Replace the status file atomically."""
    replace_file(folder / STATUS_FILE, json.dumps(asdict(status)).encode())


def signature(folder: Path) -> object:
    """Return a value that differs whenever the status file has changed, without reading the file."""
    try:
        stat = os.stat(folder / STATUS_FILE)
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns)
