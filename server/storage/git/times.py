"""When each file was first and last committed: read from git once and cached by commit.

A site that is no repository, or a machine without git, knows no such times.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from server.documents.timestamps import from_seconds
from server.storage.git.command import git
from server.storage.git.uncommitted import changed_paths

_COMMIT = "\x01"
_VERSION = 1


@dataclass(frozen=True, slots=True)
class CommitTimes:
    """The first and last commit of every path, as seconds since 1970, at one commit.

    `changed` are the paths whose file differs from that commit: git knows no time for those yet.
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


def read_times(root: Path, cache: Path | None = None, before: CommitTimes | None = None) -> CommitTimes:
    """The times at HEAD. What `before` or the file `cache` holds of it is not read from git again."""
    commit = (git(root, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip()
    if not commit:
        return CommitTimes()
    known = before if before and before.commit else _load(cache)
    if known.commit == commit:
        times = dict(known.times)
    elif known.commit and _is_ancestor(root, known.commit, commit):
        times = dict(known.times)
        _read_log(root, f"{known.commit}..{commit}", times)
    else:
        times = {}
        _read_log(root, commit, times)
    if cache and known.commit != commit:
        _save(cache, commit, times)
    return CommitTimes(commit, times, changed_paths(root))


def _is_ancestor(root: Path, old: str, new: str) -> bool:
    return git(root, "merge-base", "--is-ancestor", old, new) is not None


def _read_log(root: Path, span: str, times: dict[str, tuple[int, int]]) -> None:
    """Add the times of the commits in a span, of which git prints the newest first."""
    # With -c, a merge lists only the files in which it differs from all of its parents.
    printed = git(
        root,
        "log",
        "-c",
        "--no-show-signature",
        "--no-renames",
        "-z",
        "--name-only",
        "--relative",
        f"--format={_COMMIT}%ct",
        span,
    )
    at = 0
    newest: dict[str, int] = {}
    for part in (printed or "").split("\0"):
        name = part.lstrip("\n")
        if name.startswith(_COMMIT):
            stamp, _, name = name[1:].partition("\n")
            at = int(stamp)
            name = name.lstrip("\n")
        if name:
            newest.setdefault(name, at)
            first, last = times.get(name, (at, at))
            times[name] = (min(first, at), max(last, newest[name]))


def _load(cache: Path | None) -> CommitTimes:
    """The cached times; none where the cache is missing, damaged or of another version."""
    try:
        data = json.loads(cache.read_bytes()) if cache else {}
        if data["version"] != _VERSION:
            return CommitTimes()
        times = {str(path): (int(first), int(last)) for path, (first, last) in data["times"].items()}
        return CommitTimes(str(data["commit"]), times)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return CommitTimes()


def _save(cache: Path, commit: str, times: Mapping[str, tuple[int, int]]) -> None:
    temporary = cache.with_name(f"{cache.name}.{os.getpid()}")
    text = json.dumps({"version": _VERSION, "commit": commit, "times": times})
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
        temporary.replace(cache)
    except OSError:
        temporary.unlink(missing_ok=True)
