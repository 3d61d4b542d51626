"""Local branches. The functions raise GitError if git fails, and never change a working tree."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from server.errors import GitBusyError, GitError
from server.storage.files import file_mark_of
from server.storage.git.command import git, git_or_fail, was_git_killed
from server.storage.git.full_disk import storage_errors
from server.storage.git.ref_updates import recorded_ref_update
from server.storage.git.refs import (
    BRANCH_PREFIX,
    COMMIT_ID,
    MAX_NAME_CHARS,
    branch_commit,
    is_special_git_name,
)
from server.storage.git.repository import git_folder_id_of, is_stale_lock, location

_REF_FIELDS = ("refname", "objectname", "authorname", "authoremail:trim", "authordate:unix", "worktreepath")
# git holds the lock of a branch for milliseconds, unless a hook runs.
BRANCH_LOCK_TIMEOUT_S = 2.0
_POLL_INTERVAL_S = 0.01


@dataclass(frozen=True, slots=True)
class Branch:
    """Local branch with its last commit. If this commit can't be read, `problem` says why."""

    name: str
    commit: str
    author: str
    email: str
    authored: int  # in seconds since 1970
    worktree: str  # the folder in which the branch is checked out, or ""
    problem: str = ""


def branches(root: Path) -> list[Branch]:
    """Return all local branches, sorted by name."""
    if git_folder_id_of(root) is None:
        return []
    try:
        return _read_branches(root, BRANCH_PREFIX)
    except GitError:
        sound, damaged = _separate_damaged(root)
        if not damaged:
            raise
        found = _read_branches(root, *sound) if sound else []
        return sorted((*found, *damaged), key=lambda branch: branch.name)


def _read_branches(root: Path, *patterns: str) -> list[Branch]:
    form = "%00".join(f"%({field})" for field in _REF_FIELDS)
    output = git_or_fail(root, "for-each-ref", f"--format={form}", *patterns)
    result = []
    for line in output.splitlines():
        name, commit, author, email, authored, worktree = line.split("\0")
        if commit and authored:
            name, author, email = (
                _readable(text) for text in (name.removeprefix(BRANCH_PREFIX), author, email)
            )
            result.append(Branch(name, commit, author, email, int(authored), worktree))
    return result


def merged_branches(root: Path) -> frozenset[str]:
    """Return the names of the branches that are merged into the checked-out branch."""
    if git_folder_id_of(root) is None:
        return frozenset()
    merged = ("for-each-ref", "--merged=HEAD", "--format=%(refname)")
    try:
        output = git_or_fail(root, *merged, BRANCH_PREFIX)
    except GitError:
        sound, damaged = _separate_damaged(root)
        if not damaged:
            raise
        output = git_or_fail(root, *merged, *sound) if sound else ""
    return frozenset(_readable(line.removeprefix(BRANCH_PREFIX)) for line in output.splitlines())


def _separate_damaged(root: Path) -> tuple[list[str], list[Branch]]:
    """Return the refs of the intact branches, and the damaged branches.

    A single damaged branch prevents git from listing the others with their commits.
    """
    output = git_or_fail(root, "for-each-ref", "--format=%(objectname) %(refname)", BRANCH_PREFIX)
    refs = [line.partition(" ")[::2] for line in output.splitlines()]
    ids = "".join(f"{commit}\n" for commit, _ in refs)
    kinds = git_or_fail(root, "cat-file", "--batch-check=%(objecttype)", stdin=ids).splitlines()
    sound, damaged = [], []
    for (commit, ref), kind in zip(refs, kinds, strict=True):
        if kind == "commit":
            sound.append(ref)
        else:
            problem = f"The commit {commit[:10]} is missing or damaged; git fsck lists the damaged objects"
            damaged.append(Branch(_readable(ref.removeprefix(BRANCH_PREFIX)), commit, "", "", 0, "", problem))
    return sound, damaged


def _readable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


def is_branch_name(root: Path, name: str) -> bool:
    """Return True if the name is valid for a branch and has no other meaning in git."""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable() or COMMIT_ID.fullmatch(name):
        return False
    if name.startswith("-") or is_special_git_name(name.upper()) or is_special_git_name(name.lower()):
        return False
    remotes = (git(root, "remote") or "").splitlines()
    if name.startswith(
        tuple(f"{word}/" for word in ("refs", "heads", "tags", "remotes", "origin", *remotes))
    ):
        return False
    # Without the option `--branch`, the exit status distinguishes an invalid name from a failure.
    return git(root, "check-ref-format", BRANCH_PREFIX + name) is not None


def move_branch(root: Path, name: str, commit: str, before: str, reason: str) -> bool:
    """Move a branch from the commit `before` to `commit`. If `before` is "", create the branch.

    Return False if another process has moved the branch, or if its name conflicts with another branch, as
    `a/b` conflicts with `a`. Raises GitBusyError if the branch stays locked. `reason` is written to the
    reflog.
    """
    nothing = "0" * len(commit)
    options = ("-m", f"bifolio: {reason}", "--create-reflog")
    arguments = (*options, BRANCH_PREFIX + name, commit, before or nothing)
    return _update_ref(root, name, before, arguments, after=commit)


def delete_branch(root: Path, name: str, commit: str) -> bool:
    """Delete a branch if it is still at `commit`, and otherwise return False.

    Raises GitBusyError if the branch stays locked.
    """
    # `git branch --delete` would also delete a commit that another process has just added.
    is_deleted = _update_ref(root, name, commit, ("-d", BRANCH_PREFIX + name, commit))
    if is_deleted:
        with suppress(GitError):  # The branch usually has no section.
            git_or_fail(root, "config", "--remove-section", f"branch.{name}")
    return is_deleted


def _update_ref(root: Path, name: str, before: str, arguments: Sequence[str], *, after: str = "") -> bool:
    """Run `git update-ref`. `after` is the branch's new commit, or "" if the branch is deleted.

    Return False if the branch is not at `before`, or if its name conflicts with another branch.
    """
    deadline = time.monotonic() + BRANCH_LOCK_TIMEOUT_S
    while True:
        try:
            with storage_errors(), recorded_ref_update(root, {BRANCH_PREFIX + name: after}):
                git_or_fail(root, "update-ref", *arguments)
            return True
        except GitError as error:
            is_killed = was_git_killed()
            is_locked = ".lock': File exists" in error.message  # Another process is moving the branch.
            if is_locked:
                wait_for_branch_lock(root, name, deadline)
            if branch_commit(root, name) != before or (not before and _is_in_the_way(root, name)):
                return False
            if not (is_locked or is_killed) or time.monotonic() > deadline:
                raise


def wait_for_branch_lock(root: Path, name: str, deadline: float | None = None) -> None:
    """Wait until a branch is unlocked. Raises GitBusyError after the deadline, or if the lock is stale.

    The default deadline is BRANCH_LOCK_TIMEOUT_S from now.
    """
    place = location(root)
    lock = place.common / f"{BRANCH_PREFIX}{name}.lock" if place else None
    deadline = time.monotonic() + BRANCH_LOCK_TIMEOUT_S if deadline is None else deadline
    while place and lock and (mark := file_mark_of(lock)):
        if is_stale_lock(mark) or time.monotonic() > deadline:
            file = f"{place.common.name}/{BRANCH_PREFIX}{name[:100]}.lock"
            raise GitBusyError(
                f"git has not released the branch's lock {file}; if no git command is running in the "
                "repository, delete this file"
            )
        time.sleep(_POLL_INTERVAL_S)


def _is_in_the_way(root: Path, name: str) -> bool:
    names = [branch.name for branch in branches(root)]
    return any(one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in names)


def worktree_of(root: Path, name: str) -> str:
    """Return the folder in which a branch is checked out, or "" if it is not checked out."""
    output = git_or_fail(root, "for-each-ref", "--format=%(worktreepath)", BRANCH_PREFIX + name)
    return output.rstrip("\n")


def is_being_rebased(root: Path, name: str) -> bool:
    place = location(root)
    folders = (place.common, *place.common.glob("worktrees/*")) if place else ()
    files = (folder / f"rebase-{kind}" / "head-name" for folder in folders for kind in ("merge", "apply"))
    return f"{BRANCH_PREFIX}{name}" in map(_first_line, files)


def _first_line(file: Path) -> str:
    try:
        return file.read_text(errors="surrogateescape").partition("\n")[0]
    except OSError:
        return ""


def remove_new_branch(root: Path, name: str, commit: str) -> bool:
    """Delete a branch if it is at `commit` and is not checked out. Return True if this call deleted it."""
    return not worktree_of(root, name) and delete_branch(root, name, commit)


def merge_base(root: Path, one: str, other: str) -> str:
    if not (one and other):
        return ""
    base = (git(root, "merge-base", one, other) or "").strip()
    return base if COMMIT_ID.fullmatch(base) else ""
