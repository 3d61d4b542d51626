"""What the index is and how far it is: a small file beside it, for every process to look at."""

import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

FILE = "status.json"
FOLDER = "search"  # below .quire/
DAMAGED = "damaged"  # a file of this name asks the writer to build the index anew


@dataclass(frozen=True, slots=True)
class Status:
    """`shape` is what the index was made for (texts.shape); empty until it is whole for the first time.

    `numbers` has the number of each attribute in the index; `documents` of `total` are in it,
    `pending` are to be indexed anew; `commits` grows with what readers can see. `build` is another
    for every index that was begun anew.
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
    """The status of the index in a folder; None where there is none that can be read."""
    try:
        return Status(**json.loads((folder / FILE).read_bytes()))
    except (OSError, ValueError, TypeError):
        return None


def write_status(folder: Path, status: Status) -> None:
    """Put a status in place, in one step."""
    temporary = folder / f"{FILE}.{os.getpid()}"
    temporary.write_text(json.dumps(asdict(status)))
    temporary.replace(folder / FILE)


def signature(folder: Path) -> object:
    """Changes whenever the status does; cheap to ask for."""
    try:
        stat = os.stat(folder / FILE)
    except OSError:
        return None
    return (stat.st_ino, stat.st_mtime_ns)
