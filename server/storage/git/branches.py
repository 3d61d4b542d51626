"""The branches of a repository: which there are, and making, moving and deleting them.

Only branches of the repository itself count, not those of remotes. Nothing here touches a working tree.
"""

from dataclasses import dataclass
from pathlib import Path

from server.storage.git.command import git, git_or_none
from server.storage.git.refs import COMMIT_ID, HEADS, LONGEST

_FIELDS = ("refname", "objectname", "authorname", "authoremail:trim", "authordate:unix", "worktreepath")


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
    """All branches, by name."""
    form = "%00".join(f"%({field})" for field in _FIELDS)
    printed = git(root, "for-each-ref", f"--format={form}", HEADS) or ""
    found = []
    for line in printed.splitlines():
        name, commit, author, email, authored, worktree = line.split("\0")
        if commit and authored:
            name, author, email = (_readable(text) for text in (name.removeprefix(HEADS), author, email))
            found.append(Branch(name, commit, author, email, int(authored), worktree))
    return found


def _readable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="replace")


def is_branch_name(root: Path, name: str) -> bool:
    """Whether git takes a name for a branch, and nothing else could be meant by it."""
    if not name or len(name) > LONGEST or not name.isprintable() or COMMIT_ID.fullmatch(name):
        return False
    # git prints the branch that a short form such as @{-1} stands for.
    printed = git(root, "check-ref-format", "--branch", name)
    return printed is not None and printed.rstrip("\n") == name and name not in ("HEAD", "@")


def move_branch(root: Path, name: str, commit: str, before: str, why: str) -> bool:
    """Let a branch go on from one commit to another, in one step.

    Whether it did: not where it is at some other commit by now. A new branch comes from "".
    """
    nothing = "0" * len(commit)
    moved = ("-m", f"quire: {why}", "--create-reflog", HEADS + name, commit, before or nothing)
    return git(root, "update-ref", *moved) is not None


def delete_branch(root: Path, name: str) -> bool:
    """Delete a branch, merged or not; whether git did. It never does while it is checked out."""
    return git(root, "branch", "--delete", "--force", "--quiet", "--", name) is not None


def merge_base(root: Path, one: str, other: str) -> str:
    """The last commit that two commits have in common; "" where there is none, as in some shallow clones.

    Raises GitError.
    """
    if not (one and other):
        return ""
    found = (git_or_none(root, "merge-base", one, other) or "").strip()
    return found if COMMIT_ID.fullmatch(found) else ""
