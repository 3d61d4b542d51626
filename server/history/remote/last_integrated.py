"""Ref to the last commit that was merged from a remote branch.

By comparing with this ref, Bifolio detects whether the remote has only added commits or has rewritten its
history, and which local commits have not been pushed.
"""

from datetime import UTC, datetime
from pathlib import Path

from server.storage.git.command import git, git_as_owner
from server.storage.git.refs import ref_commit

_INTEGRATED_REF, _BEFORE_REF = "refs/bifolio/remote", "refs/bifolio/before"


def ref_name(branch: str) -> str:
    """Return the name of the ref to the last commit that was merged from a remote branch."""
    return f"{_INTEGRATED_REF}/{branch}"


def last_commit(root: Path, branch: str) -> str:
    """Return the last commit that was merged from a remote branch, or "" if no commit was merged."""
    return ref_commit(root, ref_name(branch))


def remember(root: Path, branch: str, commit: str) -> None:
    """Record that a commit from a remote branch was merged. Raises CommitError."""
    if last_commit(root, branch) != commit:
        git_as_owner(root, "update-ref", ref_name(branch), commit)


def keep(root: Path, branch: str, commit: str) -> str:
    """Create a ref to a commit, so that git does not delete the commit. Return the ref's name.

    If possible, an existing ref is reused. Raises CommitError and GitError.
    """
    options = ("--count=1", "--format=%(refname)", f"--points-at={commit}", "--", f"{_BEFORE_REF}/{branch}/")
    if existing := (git(root, "for-each-ref", *options) or "").strip():
        return existing
    timestamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = f"{_BEFORE_REF}/{branch}/{timestamp}-{commit[:10]}"
    git_as_owner(root, "update-ref", name, commit)
    return name
