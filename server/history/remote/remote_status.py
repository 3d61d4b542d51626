"""Status of the served branch in relation to the remote."""

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
    """Status of the served branch in relation to the remote. Times are in seconds since 1970.

    - `state`: CURRENT, BEHIND (remote commits can't be applied) or AWAY (fetching fails)
    - `commits`: the number of remote commits that are not served yet
    - `files`: the files that prevent remote commits from being applied
    - `asked`: the time of the last successful fetch
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
    path = root / STATE_FOLDER / _STATUS_FILE
    try:
        stored = json.loads(path.read_bytes())
        return RemoteStatus(**{**stored, "files": tuple(stored["files"])})
    except (OSError, ValueError, TypeError, LookupError):
        return None


def write_status(root: Path, status: RemoteStatus) -> None:
    with suppress(OSError):
        replace_file(state_folder(root) / _STATUS_FILE, json.dumps(asdict(status)).encode())


def delete_status(root: Path) -> None:
    with suppress(OSError):
        (root / STATE_FOLDER / _STATUS_FILE).unlink()
