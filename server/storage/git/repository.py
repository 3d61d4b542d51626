"""The repository of a site: where it is, its HEAD, and whether a git command is at work in it."""

import time
from pathlib import Path

from server.storage.files import Signature, signature_of
from server.storage.git.command import git

STALE_S = 30.0  # how old the lock of a git command can be that is still at work


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


def git_lock(folder: Path) -> Signature | None:
    """The lock that a git command holds while it changes the files of a repository; None without one."""
    return signature_of(folder / "index.lock")


def is_at_work(lock: Signature | None) -> bool:
    """Whether a lock says that a git command may be changing files.

    git writes the new index into its lock when it is done with the files; `git commit -a` holds one like that
    while it waits for an editor. One that is old is from a command that was killed.
    """
    return lock is not None and not lock[1] and abs(time.time() - lock[0] / 1e9) < STALE_S
