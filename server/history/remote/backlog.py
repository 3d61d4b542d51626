"""Backlog: the commits that have not been pushed yet."""

import json
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from server.config.model import Settings
from server.paths import STATE_FOLDER
from server.storage.durable import replace_file
from server.storage.git.command import git_or_fail
from server.storage.git.refs import checked_out_branch, head_commit
from server.storage.git.remote import tracked_commit

_BACKLOG_FILE = "push.json"
MAX_COMMITS = 10_000  # Further commits are not counted.


@dataclass(frozen=True, slots=True)
class Backlog:
    """The commits that have not been pushed yet.

    `oldest_at` is the time of the oldest of these commits, in seconds since 1970. `error` is the reason why
    the last push failed, or "".
    """

    commit_count: int = 0
    oldest_at: float = 0.0
    error: str = ""
    files: tuple[str, ...] = ()


def backlog(root: Path, settings: Settings) -> Backlog:
    """Return a site's backlog, which is empty if pushing is disabled. Raises GitError."""
    branch = settings.git.branch or checked_out_branch(root)
    if not settings.git.push or not branch:
        return Backlog()
    head, remote_head = head_commit(root), tracked_commit(root, settings.git.remote, branch)
    if head == remote_head or not head:
        return _last_failure(root)
    options = (
        f"--max-count={MAX_COMMITS}",
        "--format=%ct",
        head,
        *([f"^{remote_head}"] if remote_head else []),
    )
    times = git_or_fail(root, "log", *options, "--").split()
    since = float(times[-1]) if times else 0.0
    return replace(_last_failure(root), commit_count=len(times), oldest_at=since)


def _last_failure(root: Path) -> Backlog:
    try:
        stored = json.loads((root / STATE_FOLDER / _BACKLOG_FILE).read_bytes())
        return Backlog(error=str(stored["error"]), files=tuple(stored.get("files", ())))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return Backlog()


def store_error(root: Path, error: str, files: tuple[str, ...] = ()) -> None:
    """Store the error of the last push for other processes. If `error` is "", delete the stored error."""
    if Backlog(error=error, files=files) == _last_failure(root):
        return
    path = root / STATE_FOLDER / _BACKLOG_FILE
    with suppress(OSError):
        if error:
            replace_file(path, json.dumps({"error": error, "files": files}).encode())
        else:
            path.unlink(missing_ok=True)
