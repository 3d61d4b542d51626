"""What is committed here and not at the remote yet: how much, since when, and why it waits.

How much it is git knows, whatever becomes of the processes. Why it waits is in a small file in .bifolio/,
which the process that pushes writes and all others read.
"""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from server.config.model import Settings
from server.paths import STATE_FOLDER
from server.storage.durable import replace_file
from server.storage.git.command import git_or_fail
from server.storage.git.refs import checked_out, head_commit
from server.storage.git.remote import tracked_commit

_BACKLOG_FILE = "push.json"
MAX_COMMITS = 10_000  # Commits that are counted.


@dataclass(frozen=True, slots=True)
class Backlog:
    """How many commits the remote has not, since when (seconds since 1970), and how the last try failed.

    `files` are those that both have changed, where that is how.
    """

    commits: int = 0
    since: float = 0.0
    error: str = ""
    files: tuple[str, ...] = ()


def backlog(root: Path, settings: Settings) -> Backlog:
    """What is to be pushed from the site at `root`; nothing where nothing is pushed.

    Raises GitError.
    """
    branch = settings.git.branch or checked_out(root)
    if not settings.git.push or not branch:
        return Backlog()
    head, there = head_commit(root), tracked_commit(root, settings.git.remote, branch)
    if head == there or not head:
        return _last_failure(root)
    options = (f"--max-count={MAX_COMMITS}", "--format=%ct", head, *([f"^{there}"] if there else []))
    times = git_or_fail(root, "log", *options, "--").split()
    since = float(times[-1]) if times else 0.0
    return replace(_last_failure(root), commits=len(times), since=since)


def _last_failure(root: Path) -> Backlog:
    """Why the last push failed; nothing where it has not."""
    try:
        found = json.loads((root / STATE_FOLDER / _BACKLOG_FILE).read_bytes())
        return Backlog(error=str(found["error"]), files=tuple(found.get("files", ())))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Backlog()


def note_error(root: Path, error: str, files: tuple[str, ...] = ()) -> None:
    """Let all processes know why a push has failed, or that none does any more."""
    if Backlog(error=error, files=files) == _last_failure(root):
        return
    path = root / STATE_FOLDER / _BACKLOG_FILE
    with suppress(OSError):
        if error:
            replace_file(path, json.dumps({"error": error, "files": files}).encode())
        else:
            path.unlink(missing_ok=True)
