"""When each file was first and last committed: git's history, read once and cached by commit.

The command `git` is run for it, so that nothing runs which a repository configures: its owner need not
be who runs Quire. Only git's own code is at work: no hook, monitor, filter, pager or signature program, no
submodule, no fetch. Whose repository may be read at all is for git to say (`safe.directory`). A site that
is no repository, or a machine without git, has no history.
"""

import json
import logging
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from server.documents.timestamps import from_seconds
from server.storage.files import Signature, signature_of

log = logging.getLogger("quire")

STALE_S = 30.0  # how old the lock of a git command can be that is still at work
_COMMIT = "\x01"
_VERSION = 1
# A diff runs nothing: no program that compares or converts, and no git of its own in a submodule.
_PLAIN = ("--no-ext-diff", "--no-textconv", "--ignore-submodules=all")
_MOST_ARGUMENTS = 200  # paths on a command line; of more, git is asked about all
# What a repository's own configuration says otherwise is overruled by these.
_FIXED = (
    "core.quotePath=false",
    "core.fsmonitor=false",
    f"core.hooksPath={os.devnull}",
    "core.pager=cat",
    "core.sshCommand=false",
    "core.askPass=false",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "gpg.ssh.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
    "safe.bareRepository=explicit",
)
# A clone without all objects would fetch those that are missing, over whatever its remote is.
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
_NOT_OURS = "dubious ownership"  # in what git says of a repository of somebody else


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


def is_tracked(root: Path, path: str) -> bool:
    """Whether git knows a file at a path of the site or below it."""
    return bool(git(root, "ls-files", "--", path))


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


def git(root: Path, *arguments: str, index: Path | None = None, filters: Iterable[str] = ()) -> str | None:
    """What a git command prints, with the repository's index or another; None where it fails.

    `filters` are the names of filters (`filter.NAME.clean`) that are not to be run.
    """
    settings = [*_FIXED, *(setting for name in filters for setting in _without_filter(name))]
    options = [word for setting in settings for word in ("-c", setting)]
    command = ["git", "--no-pager", *options, "--literal-pathspecs", "-C", str(root), *arguments]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= _ENVIRONMENT
    if index:
        environment["GIT_INDEX_FILE"] = str(index)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False
        )
    except OSError:
        return None
    if done.returncode and _NOT_OURS.encode() in done.stderr:
        _tell_of_owner(root)
    return done.stdout.decode(errors="surrogateescape") if done.returncode == 0 else None


def filter_names(root: Path) -> tuple[str, ...] | None:
    """The names of the filters that are configured; None where one has a name that can't be overruled."""
    found = git(root, "config", "--null", "--name-only", "--get-regexp", r"^filter\..")
    keys = (found or "").split("\0")
    names = tuple(sorted({key.removeprefix("filter.").rpartition(".")[0] for key in keys if key}))
    return None if any("=" in name for name in names) else names


def _without_filter(name: str) -> tuple[str, ...]:
    return (
        f"filter.{name}.clean=",
        f"filter.{name}.smudge=",
        f"filter.{name}.process=",
        f"filter.{name}.required=false",
    )


@lru_cache(maxsize=16)
def _tell_of_owner(root: Path) -> None:
    """Say once why a site has no history."""
    log.warning(
        "%s: the repository belongs to somebody else, so that git does not read it; timestamps come from "
        "the file system (git config --global --add safe.directory %s, if you trust it)",
        root,
        root,
    )


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


def is_at_work(lock: Signature | None) -> bool:
    """Whether a lock says that a git command may be changing files.

    git writes the new index into its lock when it is done with the files; `git commit -a` holds one like that
    while it waits for an editor. One that is old is from a command that was killed.
    """
    return lock is not None and not lock[1] and abs(time.time() - lock[0] / 1e9) < STALE_S
