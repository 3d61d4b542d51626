"""Status of the served branch in relation to the remote, stored in a file in .bifolio/ that all processes can
read.
"""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from server.paths import STATE_FOLDER, state_folder
from server.storage.durable import replace_file

_STATUS_FILE = "following.json"
CURRENT, BEHIND, AWAY = "current", "behind", "away"


@dataclass(frozen=True, slots=True)
class RemoteStatus:
    """Status of the served branch in relation to the remote, and the time since when this status applies. The
    status is CURRENT, BEHIND (some remote commits are not served yet) or AWAY (the remote is unavailable).

    - `commit`: the commit on the remote branch at the last fetch.
    - `commits`: the number of remote commits that are not served yet.
    - `reason`: why these commits are not served. `files` are the files that prevent the merge.
    - `asked`: when the remote last responded.

    Times are in seconds since 1970.
    """

    state: str = CURRENT
    remote: str = ""
    branch: str = ""
    commit: str = ""
    commits: int = 0
    since: float = 0.0
    reason: str = ""
    files: tuple[str, ...] = ()
    asked: float = 0.0


def read_remote_status(root: Path) -> RemoteStatus | None:
    """Return the stored status for the site at `root`, or None if no process has fetched yet."""
    path = root / STATE_FOLDER / _STATUS_FILE
    try:
        stored = json.loads(path.read_bytes())
        return RemoteStatus(**{**stored, "files": tuple(stored["files"])})
    except (OSError, ValueError, TypeError, LookupError):
        return None


def write_status(root: Path, status: RemoteStatus) -> None:
    """Store the status, so that other processes can read it."""
    with suppress(OSError):
        replace_file(state_folder(root) / _STATUS_FILE, json.dumps(asdict(status)).encode())


def delete_status(root: Path) -> None:
    """Delete the stored status, because the site no longer follows the remote."""
    with suppress(OSError):
        (root / STATE_FOLDER / _STATUS_FILE).unlink()
