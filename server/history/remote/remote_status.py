"""How what is served stands to the remote: one process writes it to a file in .bifolio/, and all read it."""

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
    """What is served is CURRENT, BEHIND what the remote has, or the remote is AWAY, `since` a time.

    `commit` is where the remote's branch was when it was asked last, `commits` how many of its commits what
    is served has not. `reason` says why, with the `files` that are in the way. `asked` is when the remote has
    answered last. Times are in seconds since 1970.
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
    """The standing of the site at `root`; None where nobody has followed a remote yet."""
    path = root / STATE_FOLDER / _STATUS_FILE
    try:
        found = json.loads(path.read_bytes())
        return RemoteStatus(**{**found, "files": tuple(found["files"])})
    except (OSError, ValueError, TypeError, LookupError):
        return None


def write_standing(root: Path, standing: RemoteStatus) -> None:
    """Let all processes know."""
    with suppress(OSError):
        replace_file(state_folder(root) / _STATUS_FILE, json.dumps(asdict(standing)).encode())


def forget_standing(root: Path) -> None:
    """Nobody follows a remote any more."""
    with suppress(OSError):
        (root / STATE_FOLDER / _STATUS_FILE).unlink()
