"""Lookup of a commit by a name that a user has entered, such as a tag or a date."""

import shutil
from pathlib import Path

from server.errors import ConflictError, ValidationError
from server.storage.git.command import git, trust_command
from server.storage.git.log import CommitLog
from server.storage.git.refs import commit_at, find_public_commit, head_commit, parse_time
from server.storage.git.repository import git_folder_id_of

NO_GIT_MESSAGE = "git is not installed or not in PATH; the site's history requires git"
NO_REPOSITORY_MESSAGE = (
    "The site is not in a git repository; run git init -b main in the site's folder and commit the files "
    "first"
)
FOREIGN_MESSAGE = (
    "The site's git repository belongs to another user than the one that runs Bifolio, so git refuses to "
    "read it; change its owner (chown -R) or, if you trust everyone who can write to it, run as that user: {}"
)
UNREADABLE_MESSAGE = (
    "git can't read the repository in .git; run git status in the site's folder for the reason"
)
NO_COMMIT_MESSAGE = "The site's git repository has no commits; commit the site first"


def no_repository(root: Path) -> str:
    if not shutil.which("git"):
        return NO_GIT_MESSAGE
    trust = trust_command(root)
    if trust:
        return FOREIGN_MESSAGE.format(trust)
    return NO_REPOSITORY_MESSAGE if git_folder_id_of(root) is None else UNREADABLE_MESSAGE


def require_head(root: Path) -> str:
    head = head_commit(root)
    if not head:
        require_git(root)
        raise ConflictError(NO_COMMIT_MESSAGE)
    return head


def require_git(root: Path) -> None:
    if git(root, "rev-parse", "--git-dir") is None:
        raise ConflictError(no_repository(root))


def resolve_commit_name(root: Path, log: CommitLog, name: str) -> str:
    """Return the id of the commit that `name` refers to.

    The name can be a commit id, a tag, a branch, a remote branch, or a time such as `2026-11-01`. Raises
    ValidationError if there is no such commit, or ConflictError if the site has no commits.
    """
    head, time = require_head(root), parse_time(name)
    commit = find_public_commit(root, name)
    if not commit and time is not None:
        commit = commit_at(log, head, time)
        if not commit:
            raise ValidationError(f'There is no commit at or before "{name}"')
    if not commit:
        require_git(root)
        raise ValidationError(f'"{name[:100]}" is not a commit, tag or branch, nor a date such as 2026-11-01')
    return commit
