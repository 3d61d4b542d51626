"""When each file was first and last committed: read from git once and cached by commit.

A site that is no repository, or a machine without git, knows no such times.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.documents.timestamps import from_seconds
from server.storage.git.log import ALIKE, Commit, CommitLog, FileChange
from server.storage.git.refs import head_commit
from server.storage.git.uncommitted import changed_paths

FILE = "git.json"
_VERSION = 3


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The first and last commit of every path, as seconds since 1970, at one commit.

    The first of a file that was renamed is that of its name before. `changed` are the paths whose file
    differs from that commit: git knows no time for those yet.
    """

    commit: str = ""
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()

    def timestamps(self, path: str, modified: float) -> tuple[str, str]:
        """(createdAt, updatedAt) of a file that was modified at `modified` seconds since 1970."""
        found = self.times.get(path)
        if found is None:
            at = from_seconds(modified)
            return at, at
        first, last = found
        return from_seconds(first), from_seconds(modified if path in self.changed else last)


def read_times(root: Path, folder: Path | None = None, before: CommitTimes | None = None) -> CommitTimes:
    """The times at HEAD. What `before` or the cache in `folder` holds is not read from git again."""
    commit = head_commit(root)
    if not commit:
        return CommitTimes()
    known = before if before and before.commit else _load(folder)
    if known.commit == commit:
        return replace(known, changed=changed_paths(root, cache=folder))
    log = CommitLog(root, folder)
    log.update(commit)
    since = list(log.before(commit, until=(known.commit,)))
    grown = any(known.commit in one.parents for one in since)
    times = with_commits(known.times if grown else {}, since)
    if folder:
        _save(folder, commit, times)
    return CommitTimes(commit, times, changed_paths(root, cache=folder))


def with_commits(
    times: Mapping[str, tuple[int, int]], commits: Iterable[Commit]
) -> dict[str, tuple[int, int]]:
    """The first and last commit of every path with some commits more, of which the newest come first."""
    later = dict(times)
    newest: dict[str, int] = {}
    renames: list[FileChange] = []
    for commit in commits:
        renames += [change for change in commit.changes if change.status == "R" and change.alike >= ALIKE]
        at = commit.committed
        for change in commit.changes:
            for path in filter(None, (change.path, change.before)):
                first, last = later.get(path, (at, at))
                later[path] = (min(first, at), max(last, newest.setdefault(path, at)))
    for change in reversed(renames):
        first, last = later[change.path]
        later[change.path] = (min(first, later[change.before][0]), last)
    return later


def _load(folder: Path | None) -> CommitTimes:
    """The cached times; none where the cache is missing, damaged or of another version."""
    try:
        data = json.loads((folder / FILE).read_bytes()) if folder else {}
        if data["version"] != _VERSION:
            return CommitTimes()
        times = {str(path): (int(first), int(last)) for path, (first, last) in data["times"].items()}
        return CommitTimes(str(data["commit"]), times)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return CommitTimes()


def _save(folder: Path, commit: str, times: Mapping[str, tuple[int, int]]) -> None:
    temporary = folder / f"{FILE}.{os.getpid()}"
    text = json.dumps({"version": _VERSION, "commit": commit, "times": times})
    try:
        folder.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
        temporary.replace(folder / FILE)
    except OSError:
        temporary.unlink(missing_ok=True)
