"""The repository of a site: where it is, its HEAD, and whether a git command is at work in it."""

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from server.errors import CommitError, GitError
from server.storage.files import FileMark, file_mark_of
from server.storage.git.command import MAX_PATH_ARGUMENTS, git, git_as_owner, git_bytes_or_fail, git_or_fail

STALE_LOCK_AGE_S = 30.0  # An older lock belongs to no git command at work.
# What is in the folder of a repository while something is under way that a commit would get into.
_OPERATIONS_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_START": "a bisect",
}
_HOOKS = (
    "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
    "reference-transaction",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Location:
    """Where git has what belongs to a site: `folder` has its HEAD and index, `common` its branches.

    They differ in a working tree that was added by `git worktree`. `prefix` is where the site is in the tree.
    """

    folder: Path
    common: Path
    prefix: str


def location(root: Path) -> Location | None:
    """Where the repository of a site is; None where git knows none, or does not read it. Raises GitError.

    git is asked once, and again where another .git is in the place of that one.
    """
    mark = place_mark(root)
    try:
        return _location(root, mark) if mark else None
    except LookupError:
        return None


# Saves 7 ms of 13 of a page of history: git is asked once.
@lru_cache(maxsize=64)
def _location(root: Path, mark: object) -> Location:
    """See `location`. Raises LookupError, so that it is asked again for what may become a repository."""
    printed = git(root, "rev-parse", "--absolute-git-dir", "--git-common-dir", "--show-prefix")
    if printed is None:
        raise LookupError
    folder, common, prefix = printed.split("\n")[:3]
    return Location(Path(folder), root / common, prefix)


def place_mark(root: Path) -> object:
    """Which .git a site belongs to: the nearest one, in its folder or one above; None where there is none."""
    for folder in (root, *root.parents):
        try:
            status = os.stat(folder / ".git")
        except OSError:
            continue
        return str(folder), status.st_dev, status.st_ino
    return None


def git_folder(root: Path) -> Path | None:
    """The repository folder whose HEAD, index and index.lock belong to a site, or None."""
    found = location(root)
    return found.folder if found else None


def prefix_of(root: Path) -> str:
    """Where a site is in the working tree of its repository: "" at the top of it, else with a `/` behind."""
    found = location(root)
    return found.prefix if found else ""


def is_tracked(root: Path, path: str) -> bool:
    """Whether git knows a file at a path of the site or below it. Raises GitError."""
    return bool(git(root, "ls-files", "--", path))


def is_shallow(root: Path) -> bool:
    """Whether a clone lacks the older part of its history. Raises GitError."""
    return (git(root, "rev-parse", "--is-shallow-repository") or "").strip() == "true"


def head_by_git(root: Path) -> str:
    """Return the commit that is checked out; "" where there is none yet, or git reads no repository.

    Raises GitError where HEAD leads to one that is not there, which git itself takes for none.
    """
    if found := git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"):
        return found.strip()
    if named := git(root, "rev-parse", "--verify", "--quiet", "HEAD"):
        raise GitError(f"the object {named.strip()}, the commit that is checked out, is missing or damaged")
    place = location(root) if git(root, "rev-parse", "--git-dir") else None
    with suppress(OSError, UnicodeDecodeError):
        name = (place.folder / "HEAD").read_text().strip().removeprefix("ref: ") if place else ""
        if place and name.startswith("refs/heads/") and (place.common / name).exists():
            raise GitError(f"the file of a branch is damaged: {name} names no commit")
    return ""


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
    return (head, file_mark_of(shared / name), file_mark_of(shared / "packed-refs"))


def git_lock(folder: Path) -> FileMark | None:
    """The lock that a git command holds while it changes the files of a repository; None without one."""
    return file_mark_of(folder / "index.lock")


def under_way(folder: Path) -> str:
    """What is under way in a repository that a commit would get into: "a merge"; "" for nothing."""
    return next((what for name, what in _OPERATIONS_UNDER_WAY.items() if (folder / name).exists()), "")


def is_at_work(lock: FileMark | None) -> bool:
    """Whether a lock says that a git command may be changing files.

    git writes the new index into its lock when it is done with the files; `git commit -a` holds one like that
    while it waits for an editor. One that is old is from a command that was killed.
    """
    return lock is not None and not lock[1] and not is_old(lock)


def is_old(lock: FileMark) -> bool:
    """Return whether a lock is so old that its process has probably died."""
    return abs(time.time() - lock[0] / 1e9) >= STALE_LOCK_AGE_S


@dataclass(frozen=True, slots=True)
class Staged:
    """A file as a commit has it: its mode and the id of what is in it."""

    mode: str
    id: str


Tree = Mapping[str, Staged | None]  # by path relative to the site; None for a file that is not there


@dataclass(frozen=True, slots=True)
class Repository:
    """The repository of the site at `root`: its folder, its hooks, and where the site is in it.

    `nothing` is the id, all zeros, that stands for no object.
    """

    root: Path
    folder: Path
    hooks: Path
    prefix: str
    nothing: str

    @property
    def index(self) -> Path:
        """The index."""
        return self.folder / "index"

    def head(self) -> str:
        """The commit that is checked out; "" where there is none yet. Raises GitError."""
        found = head_by_git(self.root)
        if not found:  # Somebody may have taken the repository away since.
            git_or_fail(self.root, "rev-parse", "--git-dir")
        return found

    @property
    def runs_programs(self) -> bool:
        """Whether its commits are for `git commit`: it has hooks, or signs them."""
        if any(os.access(self.hooks / name, os.X_OK) for name in _HOOKS):
            return True
        return self.signs

    @property
    def signs(self) -> bool:
        """Whether its commits are signed. Raises GitError."""
        return (git(self.root, "config", "--type=bool", "commit.gpgSign") or "").strip() == "true"

    def require_quiet(self) -> None:
        """Raise CommitError while a merge, or anything like it, is under way."""
        if what := under_way(self.folder):
            raise CommitError(f"{what} is under way")

    @property
    def top(self) -> Path:
        """The folder of the working tree, which the site is in."""
        return [self.root, *self.root.parents][self.prefix.count("/")]

    def full(self, path: str) -> str:
        """A path as the repository has it."""
        return full_path(self.prefix, path)

    def tree(self, commit: str, paths: list[str]) -> dict[str, Staged]:
        """Those of some paths that a commit has."""
        if not commit or not paths:
            return {}
        wanted = ("--", *map(self.full, paths)) if len(paths) <= MAX_PATH_ARGUMENTS else ("-r",)
        options, named = (wanted, ()) if wanted == ("-r",) else ((), wanted)
        printed = git_bytes_or_fail(self.root, "ls-tree", "-z", "--full-tree", *options, commit, *named)
        found = {}
        for line in filter(None, printed.split(b"\0")):
            about, _, path = line.partition(b"\t")
            mode, _, id_ = about.decode().split()
            found[os.fsdecode(path)] = Staged(mode, id_)
        return {path: found[full] for path in paths if (full := self.full(path)) in found}

    def versions(self, commit: str, paths: Iterable[str]) -> Tree:
        """Some files as a commit has them; None for those that it has not got."""
        wanted = list(paths)
        there = self.tree(commit, wanted)
        return {path: there.get(path) for path in wanted}


def full_path(prefix: str, path: str) -> str:
    """A path as the repository has it, of a site that is at `prefix` in it.

    What is outside of the site begins with `../`, and is as the repository has it behind that.
    """
    return path.removeprefix("../") if path.startswith("../") else prefix + path


def repository_of(root: Path) -> Repository:
    """The repository of a site. Raises CommitError where git knows none, or does not read it."""
    wanted = ("--absolute-git-dir", "--show-prefix", "--show-object-format", "--git-path", "hooks")
    printed = os.fsdecode(git_as_owner(root, "rev-parse", *wanted))
    folder, prefix, kind, hooks = printed.split("\n")[:4]
    return Repository(root, Path(folder), root / hooks, prefix, "0" * (64 if kind == "sha256" else 40))
