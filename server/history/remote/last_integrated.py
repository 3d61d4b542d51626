"""The git ref that points to the last remote commit that was merged."""

from datetime import UTC, datetime
from pathlib import Path

from server.storage.git.command import git, git_as_owner
from server.storage.git.ref_updates import recorded_ref_update
from server.storage.git.refs import ref_commit

_INTEGRATED_REF, _BEFORE_REF = "refs/bifolio/remote", "refs/bifolio/before"


def ref_name(branch: str) -> str:
    return f"{_INTEGRATED_REF}/{branch}"


def last_commit(root: Path, branch: str) -> str:
    return ref_commit(root, ref_name(branch))


def set_last_commit(root: Path, branch: str, commit: str) -> None:
    if last_commit(root, branch) != commit:
        _create_or_move(root, ref_name(branch), commit)


def create_backup_ref(root: Path, branch: str, commit: str) -> str:
    """Return the name of a ref that keeps git from deleting a commit, and create the ref if necessary.

    Raises CommitError or GitError.
    """
    options = ("--count=1", "--format=%(refname)", f"--points-at={commit}", "--", f"{_BEFORE_REF}/{branch}/")
    if existing := (git(root, "for-each-ref", *options) or "").strip():
        return existing
    timestamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%S")
    name = f"{_BEFORE_REF}/{branch}/{timestamp}-{commit[:10]}"
    _create_or_move(root, name, commit)
    return name


def _create_or_move(root: Path, name: str, commit: str) -> None:
    with recorded_ref_update(root, {name: commit}):
        git_as_owner(root, "update-ref", name, commit)
