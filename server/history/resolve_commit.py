"""The commit that somebody names, and what is wrong where there is none."""

import shutil
from pathlib import Path

from server.errors import ConflictError, ValidationError
from server.storage.git.command import git, how_to_trust
from server.storage.git.log import CommitLog
from server.storage.git.refs import commit_at, find_commit, head_commit, read_time
from server.storage.git.repository import place_mark

NO_GIT_MESSAGE = "git is not installed, or not in PATH; the history of a site is read with it"
NO_REPOSITORY_MESSAGE = (
    "The site is in no git repository; run git init -b main in its folder and commit it first"
)
FOREIGN_MESSAGE = (
    "The site's git repository belongs to another user than the one that Bifolio runs as, so that git does "
    "not read it; give it to that user (chown -R), or, if you trust who may write to it, run as that user: {}"
)
UNREADABLE_MESSAGE = "git does not take .git for a repository; git status, in the site's folder, says why"
NO_COMMIT_MESSAGE = "The site's git repository has no commit yet; commit it first"


def no_repository(root: Path) -> str:
    """Why a site has no repository."""
    if not shutil.which("git"):
        return NO_GIT_MESSAGE
    trust = how_to_trust(root)
    if trust:
        return FOREIGN_MESSAGE.format(trust)
    return NO_REPOSITORY_MESSAGE if place_mark(root) is None else UNREADABLE_MESSAGE


def require_head(root: Path) -> str:
    """The id of the commit that is checked out. Raises ConflictError in a site without commits."""
    head = head_commit(root)
    if not head:
        require_git(root)
        raise ConflictError(NO_COMMIT_MESSAGE)
    return head


def require_git(root: Path) -> None:
    """Raise ConflictError with the reason where git does not read the repository of a site, or no more."""
    if git(root, "rev-parse", "--git-dir") is None:
        raise ConflictError(no_repository(root))


def find_named(root: Path, log: CommitLog, name: str) -> str:
    """The commit that a name means: an id, a tag, a branch or a time, such as `2026-11-01`, in this order.

    Raises ValidationError where it means none, ConflictError in a site without commits.
    """
    head, time = require_head(root), read_time(name)
    commit = find_commit(root, name)
    if not commit and time is not None:
        commit = commit_at(log, head, time)
        if not commit:
            raise ValidationError(f'There is no commit from "{name}" or before')
    if not commit:
        require_git(root)
        raise ValidationError(f'"{name[:100]}" is no commit, tag, branch or time, such as 2026-11-01')
    return commit
