"""When each file was first and last committed: git's history, read once and cached by commit.

The command `git` is run for it. A site that is no repository, or a machine without git, has no history.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from server.documents.timestamps import from_seconds
from server.storage.files import Signature, signature_of
from server.storage.git_command import filter_names, git

_COMMIT = "\x01"
_VERSION = 1
# A diff runs nothing: no program that compares or converts, and no git of its own in a submodule.
_PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
_MOST_ARGUMENTS = 200  # paths on a command line; of more, git is asked about all


@dataclass(frozen=True, slots=True)
class History:
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


def git_folder(root: Path) -> Path | None:
    """The repository folder whose HEAD, index and index.lock belong to a site, or None."""
    found = git(root, "rev-parse", "--absolute-git-dir")
    return Path(found.strip()) if found else None


def is_shallow(root: Path) -> bool:
    """Whether a clone lacks the older part of its history."""
    return (git(root, "rev-parse", "--is-shallow-repository") or "").strip() == "true"


def head_mark(folder: Path) -> object:
    """A value that changes whenever another commit is checked out or made; None where it can't be had."""
    try:
        head = (folder / "HEAD").read_text().strip()
        common = folder / "commondir"
        shared = folder / common.read_text().strip() if common.exists() else folder
        if (shared / "reftable").exists():
            return None
    except (OSError, UnicodeDecodeError):
        return None
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    return (head, signature_of(shared / name), signature_of(shared / "packed-refs"))


def read_history(root: Path, cache: Path | None = None, before: History | None = None) -> History:
    """The history at HEAD. What `before` or the file `cache` holds of it is not read from git again."""
    commit = (git(root, "rev-parse", "--verify", "--quiet", "HEAD") or "").strip()
    if not commit:
        return History()
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
    return History(commit, times, changed_paths(root))


def _is_ancestor(root: Path, old: str, new: str) -> bool:
    return git(root, "merge-base", "--is-ancestor", old, new) is not None


def _read_log(root: Path, span: str, times: dict[str, tuple[int, int]]) -> None:
    """Add the times of the commits in a span, of which git prints the newest first."""
    # With -c, a merge lists only the files in which it differs from all of its parents.
    log = git(
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
    for part in (log or "").split("\0"):
        name = part.lstrip("\n")
        if name.startswith(_COMMIT):
            stamp, _, name = name[1:].partition("\n")
            at = int(stamp)
            name = name.lstrip("\n")
        if name:
            newest.setdefault(name, at)
            first, last = times.get(name, (at, at))
            times[name] = (min(first, at), max(last, newest[name]))


def changed_paths(root: Path, paths: Collection[str] | None = None) -> frozenset[str]:
    """The paths whose file differs from the last commit, among `paths` or among all."""
    if paths is not None and not paths:
        return frozenset()
    some = ["--", *paths] if paths is not None and len(paths) <= _MOST_ARGUMENTS else []
    arguments = ("diff", *_PLAIN, "--name-only", "--no-renames", "--relative", "-z", "HEAD", *some)
    filters = filter_names(root)
    if filters is None:
        return frozenset()
    place = git(root, "rev-parse", "--git-path", "index")
    with tempfile.TemporaryDirectory(prefix="quire-") as folder:
        # git writes what it learns of the files into the index: into a copy, which nobody else locks.
        copy = Path(folder) / "index"
        try:
            shutil.copy2(root / (place or "").rstrip("\n"), copy)
        except OSError:
            return frozenset()
        found = git(root, *arguments, index=copy, filters=filters)
    changed = frozenset((found or "").split("\0")) - {""}
    return changed if paths is None else changed & frozenset(paths)


def _load(cache: Path | None) -> History:
    """The cached history; an empty one where the cache is missing, damaged or of another version."""
    try:
        data = json.loads(cache.read_bytes()) if cache else {}
        if data["version"] != _VERSION:
            return History()
        times = {str(path): (int(first), int(last)) for path, (first, last) in data["times"].items()}
        return History(str(data["commit"]), times)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return History()


def _save(cache: Path, commit: str, times: Mapping[str, tuple[int, int]]) -> None:
    temporary = cache.with_name(f"{cache.name}.{os.getpid()}")
    text = json.dumps({"version": _VERSION, "commit": commit, "times": times})
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_text(text, encoding="utf-8", errors="surrogateescape")
        temporary.replace(cache)
    except OSError:
        temporary.unlink(missing_ok=True)


def git_lock(folder: Path) -> Signature | None:
    """The lock that a git command holds while it changes the files of a repository; None without one."""
    return signature_of(folder / "index.lock")
