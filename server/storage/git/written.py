"""Comparison of written files with the files on disk, and with what other people have committed since.

While a write is waiting to be committed, other people may commit changes to the same file. The functions
determine whether the write must still be committed.
"""

import filecmp
import os
from collections.abc import Collection
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from server.errors import CommitError
from server.storage.files import digest_of
from server.storage.git.command import git_as_owner, git_or_fail
from server.storage.git.refs import are_commits
from server.storage.git.repository import Repository

ACTOR_TRAILER = "Bifolio-Actor: "  # a line with this prefix is in the message of every commit by Bifolio
MISSING = ""  # in place of a digest, for a file that does not exist
# If more commits than this changed a file, their versions are not compared with the digests.
MAX_COMPARED_COMMITS = 50


@dataclass(frozen=True, slots=True)
class Basis:
    """The versions of a file that a write replaced.

    `commit` is the id of the commit that was checked out at the time, or "" if unknown. `digests` are the
    hexadecimal digests of earlier versions of the file. If one of these versions is committed later, that
    commit does not contain the write.
    """

    commit: str
    digests: Collection[str] = ()


class ByOthers(Enum):
    """What other people have committed to a file since Bifolio wrote it."""

    NOTHING_NEWER = "nothing, or only versions that the write replaced"
    THE_WRITE = "the version that was written"
    ANOTHER_VERSION = "a version that is unrelated to the write"


def committed_by_others(
    repository: Repository, path: str, content: bytes | Path | None, basis: Basis, head: str
) -> ByOthers:
    """Return what other people have committed to a file since Bifolio wrote `content` to it.

    If the file on disk still has this content, return NOTHING_NEWER. `head` is the id of the checked-out
    commit. Raises CommitError and GitError.
    """
    root = repository.root
    if not basis.commit or basis.commit == head or is_on_disk(root / path, content):
        return ByOthers.NOTHING_NEWER
    if not head or not are_commits(root, basis.commit):  # The commit may be gone after a rewrite of history.
        return ByOthers.NOTHING_NEWER
    others = ("--invert-grep", f"--grep=^{ACTOR_TRAILER}", "--end-of-options", f"{basis.commit}..{head}")
    commits = git_or_fail(root, "log", "--format=%H", *others, "--", path).split()
    if not commits:
        return ByOthers.NOTHING_NEWER
    written = None if content is None else store_blob(root, path, content)
    versions = [repository.versions(commit, [path])[path] for commit in commits[:MAX_COMPARED_COMMITS]]
    if written in [version.id if version else None for version in versions]:
        return ByOthers.THE_WRITE
    if len(commits) > MAX_COMPARED_COMMITS:
        return ByOthers.ANOTHER_VERSION
    digests = (
        _digest_in_commit(repository, commit, path) if version else MISSING
        for commit, version in zip(commits, versions, strict=True)
    )
    is_newer = any(digest not in basis.digests for digest in digests)
    return ByOthers.ANOTHER_VERSION if is_newer else ByOthers.NOTHING_NEWER


def _digest_in_commit(repository: Repository, commit: str, path: str) -> str | None:
    """Return the digest of a file in a commit, as git would check it out.

    Return None if a git filter fails.
    """
    try:
        data = git_as_owner(repository.root, "cat-file", "--filters", f"{commit}:{repository.full(path)}")
    except CommitError:
        return None
    return digest_of(data).hex()


def store_blob(root: Path, path: str, content: bytes | Path) -> str:
    """Store the content of the file at `path` in git as a blob, and return its id.

    The git filters that are configured for this path are applied.
    """
    if isinstance(content, Path):
        # `--path` selects the filters, because the content is stored at another path.
        content = content.read_bytes() if content.stat().st_size < 1_000_000 else content
    if isinstance(content, bytes):
        printed = git_as_owner(root, "hash-object", "-w", "--stdin", f"--path={path}", stdin=content)
    else:
        printed = git_as_owner(root, "hash-object", "-w", f"--path={path}", "--", str(content.resolve()))
    return printed.decode().strip()


def is_on_disk(file: Path, content: bytes | Path | None) -> bool:
    """Whether a file on disk has the given content.

    If `content` is a path, compare with the file at that path. If it is None, return whether `file` is
    missing.
    """
    try:
        if content is None:
            return not os.path.lexists(file)
        if isinstance(content, Path):
            return file.samefile(content) or filecmp.cmp(file, content, shallow=False)
        return file.read_bytes() == content
    except OSError:
        return False
