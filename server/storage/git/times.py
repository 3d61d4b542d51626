"""When each file was first and last committed: read from git once and cached by commit.

A site that is no repository, or a machine without git, knows no such times.
"""

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from server.documents.timestamps import from_seconds
from server.errors import GitError, GitSlowError
from server.paths import cache_folder
from server.storage.durable import replace_file
from server.storage.git.log import CERTAIN_RENAME_PERCENT, Commit, CommitLog
from server.storage.git.refs import head_commit
from server.storage.git.trouble import Concern, trouble_log
from server.storage.git.uncommitted import changed_paths

FILE = "git.json"
_VERSION = 4


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The first and last commit of every path, as seconds since 1970, at one commit.

    These are the earliest and the latest that a clock has said. The first of a file that was renamed is that
    of its name before. `changed` are the paths whose file differs from that commit: git knows no time for
    those yet.
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
        return from_seconds(found[0]), from_seconds(self.modified(path, modified))

    def modified(self, path: str, modified: float) -> float:
        """When a file was last changed that was modified at `modified`, in seconds since 1970."""
        found = self.times.get(path)
        return modified if found is None or path in self.changed else found[1]


def read_times(root: Path, folder: Path | None = None, before: CommitTimes | None = None) -> CommitTimes:
    """The times at HEAD. What `before` or the cache in `folder` holds is not read from git again.

    Raises GitError if it is not known when files were committed. If it is only not known which of them were
    changed since, it says so in the log, and goes on with those that `before` has.
    """
    commit = head_commit(root)
    if not commit:
        return CommitTimes()
    known = before if before and before.commit else _load(folder)
    if known.commit == commit:
        return replace(known, changed=_changed_paths(root, folder, before))
    log = CommitLog(root, folder)
    log.update(commit)
    since = list(log.before(commit, until=(known.commit,)))
    # What a merge brings was committed beside what is known, and may have renamed files before it.
    if since and since[-1].parents == (known.commit,) and all(len(one.parents) == 1 for one in since):
        times = with_commits(known.times, since)
    else:
        times = with_commits({}, log.before(commit))
    if folder:
        _save(root, folder, commit, times)
    return CommitTimes(commit, times, _changed_paths(root, folder, before))


def _changed_paths(root: Path, folder: Path | None, before: CommitTimes | None) -> frozenset[str]:
    """The paths whose file differs from HEAD; those that differed before if git does not say."""
    try:
        changed = changed_paths(root, cache=folder)
    except GitError as error:
        tell_changed_unknown(root, error)
        return before.changed if before else frozenset()
    trouble_log(root).end(Concern.TIMES, Concern.CHANGED, Concern.REPOSITORY)
    return changed


def tell_changed_unknown(root: Path, error: GitError) -> None:
    """Log once that git does not say which files differ from the last commit."""
    # What takes too long is not asked again before the next commit.
    concern = Concern.TIMES if isinstance(error, GitSlowError) else Concern.CHANGED
    trouble_log(root).tell(concern, str(error), "which files are not committed is not known")


def with_commits(
    times: Mapping[str, tuple[int, int]], commits: Iterable[Commit]
) -> dict[str, tuple[int, int]]:
    """The first and last commit of every path with some commits more, of which the newest come first.

    It comes to the same for all at once and for one after the other, whatever the clocks of the machines said
    that made them.
    """
    later = dict(times)
    for commit in reversed(list(commits)):
        at = commit.committed
        for change in commit.changes:
            renamed = change.status == "R" and change.alike >= CERTAIN_RENAME_PERCENT
            first = later[change.before][0] if renamed and change.before in later else at
            for path in filter(None, (change.path, change.before)):
                earliest, last = later.get(path, (at, at))
                later[path] = (min(earliest, at), max(last, at))
            later[change.path] = (min(first, later[change.path][0]), later[change.path][1])
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


def _save(root: Path, folder: Path, commit: str, times: Mapping[str, tuple[int, int]]) -> None:
    text = json.dumps({"version": _VERSION, "commit": commit, "times": times})
    with suppress(OSError):
        cache_folder(root)  # Somebody may have deleted it.
        replace_file(folder / FILE, text.encode())
