"""Status of the index: a small file beside it that all processes read."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from server.storage.durable import replace_file

STATUS_FILE = "status.json"
SEARCH_FOLDER = "search"  # Below .bifolio/.
DAMAGED_FILE = "damaged"  # If this file exists, the writer builds the index anew.


@dataclass(frozen=True, slots=True)
class Status:
    """What an index was made for, and how complete it is.

    `shape` is the site's (`texts.shape`) when the index was last complete, or "". `numbers` has the number of
    each attribute. Of `total` versions, `documents` are indexed and `pending` have changed since. `commits`
    counts changes that readers can see. `build` is a random name of the index.
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
    """Return the status of the index in a folder; None if it can't be read."""
    try:
        return Status(**json.loads((folder / STATUS_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_status(folder: Path, status: Status) -> None:
    """Replace the status atomically."""
    replace_file(folder / STATUS_FILE, json.dumps(asdict(status)).encode())


def signature(folder: Path) -> object:
    """Return a value that changes with the status, without reading it."""
    try:
        stat = os.stat(folder / STATUS_FILE)
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns)
