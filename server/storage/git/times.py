"""Times of each file's first and last commit."""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

from server.documents.timestamps import from_seconds
from server.errors import GitError, GitTimeoutError
from server.paths import cache_folder
from server.storage.durable import replace_file
from server.storage.git.log import CERTAIN_RENAME_PERCENT, Commit, CommitLog
from server.storage.git.refs import head_commit
from server.storage.git.trouble import AffectedTask, trouble_log
from server.storage.git.uncommitted import changed_paths

FILE = "git.json"
_VERSION = 4


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """Times of each file's first and last commit, in seconds since 1970.

    `times` covers the history up to `commit`. `changed` contains the files that differ from their version in
    `commit`.
    """

    commit: str = ""
    times: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    changed: frozenset[str] = frozenset()

    def timestamps(self, path: str, mtime: float) -> tuple[str, str]:
        """Return createdAt and updatedAt of a file.

        updatedAt is `mtime` if the file has uncommitted changes. If it was never committed, both are `mtime`.
        """
        first, last = self.times.get(path, (mtime, mtime))
        return _timestamps(first, mtime if path in self.changed else last)

    def last_change(self, path: str, mtime: float) -> float:
        """Return the time of the file's last commit, or `mtime` if the file has uncommitted changes."""
        times = self.times.get(path)
        return mtime if times is None or path in self.changed else times[1]


# Saves 64 bytes of memory per file, because many files share a commit's timestamps.
@lru_cache(maxsize=1000)
def _timestamps(first: float, last: float) -> tuple[str, str]:
    return from_seconds(first), from_seconds(last)


def read_times(root: Path, folder: Path | None = None, before: CommitTimes | None = None) -> CommitTimes:
    """Return the commit times of all files, up to HEAD. Raises GitError if git fails.

    If possible, only commits newer than those in `before` or in the cache in `folder` are read.
    """
    commit = head_commit(root)
    if not commit:
        return CommitTimes()
    cached = before if before and before.commit else _load(folder)
    if cached.commit == commit:
        return replace(cached, changed=_changed_paths(root, folder, before))
    log = CommitLog(root, folder)
    log.update(commit)
    since = list(log.history_of(commit, excluded=(cached.commit,)))
    # After a merge, all times are recomputed, because a merge can add older commits that renamed files.
    if since and since[-1].parents == (cached.commit,) and all(len(one.parents) == 1 for one in since):
        times = with_commit_times(cached.times, since)
    else:
        times = with_commit_times({}, log.history_of(commit))
    if folder:
        _save(root, folder, commit, times)
    return CommitTimes(commit, _shared(times.items()), _changed_paths(root, folder, before))


def _changed_paths(root: Path, folder: Path | None, before: CommitTimes | None) -> frozenset[str]:
    try:
        changed = changed_paths(root, cache=folder)
    except GitError as error:
        log_unknown_changes(root, error)
        return before.changed if before else frozenset()
    trouble_log(root).resolve(AffectedTask.TIMES, AffectedTask.CHANGED, AffectedTask.REPOSITORY)
    return changed


def log_unknown_changes(root: Path, error: GitError) -> None:
    # After a timeout, do not use CHANGED, because git would then be called again before the next commit.
    task = AffectedTask.TIMES if isinstance(error, GitTimeoutError) else AffectedTask.CHANGED
    trouble_log(root).report(task, str(error), "git can't list the uncommitted files")


def with_commit_times(
    times: Mapping[str, tuple[int, int]], commits: Iterable[Commit]
) -> dict[str, tuple[int, int]]:
    """Return `times`, updated with newer `commits`, which must be sorted from newest to oldest."""
    later = dict(times)
    for commit in reversed(list(commits)):
        at = commit.committed
        for change in commit.changes:
            renamed = change.status == "R" and change.similarity_percent >= CERTAIN_RENAME_PERCENT
            first = later[change.before][0] if renamed and change.before in later else at
            for path in filter(None, (change.path, change.before)):
                earliest, last = later.get(path, (at, at))
                later[path] = (min(earliest, at), max(last, at))
            later[change.path] = (min(first, later[change.path][0]), later[change.path][1])
    return later


def _shared(times: Iterable[tuple[str, tuple[int, int]]]) -> dict[str, tuple[int, int]]:
    # Equal times share one tuple, which saves up to 128 bytes of memory per file.
    known: dict[tuple[int, int], tuple[int, int]] = {}
    return {path: known.setdefault(at, at) for path, at in times}


def _load(folder: Path | None) -> CommitTimes:
    try:
        data = json.loads((folder / FILE).read_bytes()) if folder else {}
        if data["version"] != _VERSION:
            return CommitTimes()
        times = ((str(path), (int(first), int(last))) for path, (first, last) in data["times"].items())
        return CommitTimes(str(data["commit"]), _shared(times))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return CommitTimes()


def _save(root: Path, folder: Path, commit: str, times: Mapping[str, tuple[int, int]]) -> None:
    text = json.dumps({"version": _VERSION, "commit": commit, "times": times})
    with suppress(OSError):
        cache_folder(root)  # Create the folder again if it was deleted.
        replace_file(folder / FILE, text.encode())
