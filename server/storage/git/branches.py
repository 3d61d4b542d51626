"""The branches of a repository: which there are, and making, moving and deleting them.

Only branches of the repository itself count, not those of remotes. Nothing here touches a working tree.
"""

from dataclasses import dataclass
from pathlib import Path

from server.errors import GitError
from server.storage.git.command import git, git_or_fail
from server.storage.git.refs import BRANCH_PREFIX, COMMIT_ID, MAX_NAME_CHARS, branch_commit, is_git_word
from server.storage.git.repository import place_mark

_REF_FIELDS = ("refname", "objectname", "authorname", "authoremail:trim", "authordate:unix", "worktreepath")


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch and its last commit. `authored` is in seconds since 1970; `worktree` is the folder where it is
    checked out, "" where it is in none.
    """

    name: str
    commit: str
    author: str
    email: str
    authored: int
    worktree: str


def branches(root: Path) -> list[Branch]:
    """All branches, by name. Raises GitError."""
    form = "%00".join(f"%({field})" for field in _REF_FIELDS)
    if place_mark(root) is None:
        return []
    printed = git_or_fail(root, "for-each-ref", f"--format={form}", BRANCH_PREFIX)
    found = []
    for line in printed.splitlines():
        name, commit, author, email, authored, worktree = line.split("\0")
        if commit and authored:
            name, author, email = (
                _readable(text) for text in (name.removeprefix(BRANCH_PREFIX), author, email)
            )
            found.append(Branch(name, commit, author, email, int(authored), worktree))
    return found


def _readable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


def is_branch_name(root: Path, name: str) -> bool:
    """Whether git takes a name for a branch, and nobody could mean something else by it. Raises GitError."""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable() or COMMIT_ID.fullmatch(name):
        return False
    if name.startswith("-") or is_git_word(name.upper()) or is_git_word(name.lower()):
        return False
    remotes = (git(root, "remote") or "").splitlines()
    if name.startswith(
        tuple(f"{word}/" for word in ("refs", "heads", "tags", "remotes", "origin", *remotes))
    ):
        return False
    # Its status tells a name that git does not take from a failure; that of `--branch` does not.
    return git(root, "check-ref-format", BRANCH_PREFIX + name) is not None


def move_branch(root: Path, name: str, commit: str, before: str, why: str) -> bool:
    """Let a branch go on from one commit to another, in one step.

    Whether it did: not if it is at some other commit by now. A new branch comes from ""; there can't be one
    above or below another, such as `a/b` beside `a`. Raises GitError.
    """
    nothing = "0" * len(commit)
    moved = ("-m", f"bifolio: {why}", "--create-reflog", BRANCH_PREFIX + name, commit, before or nothing)
    try:
        git_or_fail(root, "update-ref", *moved)
    except GitError as error:
        is_locked = ".lock': File exists" in error.message  # by somebody else, who moves it
        if is_locked or branch_commit(root, name) != before or _is_in_the_way(root, name):
            return False
        raise
    return True


def _is_in_the_way(root: Path, name: str) -> bool:
    """Whether a branch has a name that is a folder in that of another, or the other way round."""
    taken = [branch.name for branch in branches(root)]
    return any(one.startswith(f"{name}/") or name.startswith(f"{one}/") for one in taken)


def delete_branch(root: Path, name: str) -> bool:
    """Delete a branch, merged or not; whether git did. It never does while it is checked out.

    Raises GitError if git does not say why.
    """
    return git(root, "branch", "--delete", "--force", "--quiet", "--", name) is not None


def merge_base(root: Path, one: str, other: str) -> str:
    """The last commit that two commits have in common; "" where there is none, as in some shallow clones.

    Raises GitError.
    """
    if not (one and other):
        return ""
    found = (git(root, "merge-base", one, other) or "").strip()
    return found if COMMIT_ID.fullmatch(found) else ""
