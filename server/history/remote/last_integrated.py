"""What is known of a branch of the remote: its last commit that is in what is served, in a ref of our own.

By it a remote whose history was rewritten is told from one that has gone on, and what nobody has pushed yet
from what was there before.
"""

from datetime import UTC, datetime
from pathlib import Path

from server.storage.git.command import git, git_as_owner
from server.storage.git.refs import ref_commit

_INTEGRATED_REF, _BEFORE_REF = "refs/bifolio/remote", "refs/bifolio/before"


def ref_name(branch: str) -> str:
    """The ref that has the last commit of a branch of the remote that is in what is served."""
    return f"{_INTEGRATED_REF}/{branch}"


def last_commit(root: Path, branch: str) -> str:
    """The last commit of a branch of the remote that is in what is served; "" where there is none yet."""
    return ref_commit(root, ref_name(branch))


def remember(root: Path, branch: str, commit: str) -> None:
    """A commit of a branch of the remote is in what is served. Raises CommitError."""
    if last_commit(root, branch) != commit:
        git_as_owner(root, "update-ref", ref_name(branch), commit)


def keep(root: Path, branch: str, commit: str) -> str:
    """Give a commit a name that keeps it from being forgotten; the name, which it may have already.

    Raises CommitError and GitError.
    """
    named = ("--count=1", "--format=%(refname)", f"--points-at={commit}", "--", f"{_BEFORE_REF}/{branch}/")
    if found := (git(root, "for-each-ref", *named) or "").strip():
        return found
    at = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = f"{_BEFORE_REF}/{branch}/{at}-{commit[:10]}"
    git_as_owner(root, "update-ref", name, commit)
    return name
