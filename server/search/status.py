"""Status of the search index. It is stored in a small file in the index's folder, which all processes can
read.
"""

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
    """The status of the index.

    - `version`: the format of the index, and the version of whoosh.
    - `build`: a random name for this index.
    - `shape`: the site's shape (`texts.shape`) at the time when the index was last complete, or "".
    - `numbers`: the number of each attribute.
    - `documents`: how many versions are indexed.
    - `total`: how many versions the site has.
    - `pending`: how many versions have changed but have not been indexed yet.
    - `commits`: how many times changes were made visible to readers.
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
    """Return the status of the index in a folder. If it can't be read, return None."""
    try:
        return Status(**json.loads((folder / STATUS_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_status(folder: Path, status: Status) -> None:
    """Replace the status file atomically."""
    replace_file(folder / STATUS_FILE, json.dumps(asdict(status)).encode())


def signature(folder: Path) -> object:
    """Return a value that changes whenever the status file changes. The file itself is not read."""
    try:
        stat = os.stat(folder / STATUS_FILE)
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns)
