"""Status of the search index. It is stored in a small file in the index's folder, so that all processes can
read it.
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
    """The status of the search index.

    - `version`: the versions of the index format and of whoosh.
    - `build`: a random name for this index.
    - `shape`: the site's shape (`texts.shape`) when the index was last complete, or "" if it has never been
      complete.
    - `numbers`: the number that the index uses for each attribute.
    - `documents`: the number of document versions in the index.
    - `total`: the number of document versions in the site.
    - `pending`: the number of changed document versions that have not been indexed yet.
    - `commits`: how many times changes to the index were made visible to readers.
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
    """Return the status of the index in a folder. If the status can't be read, return None."""
    try:
        return Status(**json.loads((folder / STATUS_FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_status(folder: Path, status: Status) -> None:
    """Write the status to the index's folder. The status file is replaced atomically."""
    replace_file(folder / STATUS_FILE, json.dumps(asdict(status)).encode())


def signature(folder: Path) -> object:
    """Return a value that changes whenever the status file changes. The value is computed without reading the
    file's contents.
    """
    try:
        stat = os.stat(folder / STATUS_FILE)
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns)
