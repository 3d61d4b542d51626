"""Written files compared with the disk, and with what other people have committed since.

A write may wait for its commit while others commit the same file. These functions tell whether the write must
still be committed.
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

ACTOR_TRAILER = "Bifolio-Actor: "  # in the message of every commit by Bifolio
MISSING = ""  # in place of a digest, for a file that does not exist
MAX_COMPARED_COMMITS = 50  # Versions in more commits are not compared with the digests.


@dataclass(frozen=True, slots=True)
class Basis:
    """What a write to a file was based on.

    `commit` was checked out at the time, "" if unknown. `digests` are the hexadecimal digests of the file's
    earlier versions. A later commit of one of these versions does not contain the write.
    """

    commit: str
    digests: Collection[str] = ()


class ByOthers(Enum):
    """What others have committed to a file since a write to it."""

    NOTHING_NEWER = "nothing, or only versions that the write replaced"
    THE_WRITE = "the version that was written"
    ANOTHER_VERSION = "a version that is unrelated to the write"


def committed_by_others(
    repository: Repository, path: str, content: bytes | Path | None, basis: Basis, head: str
) -> ByOthers:
    """Return what others have committed to a file since it was written here.

    A file that is still as it was written counts as NOTHING_NEWER. Raises CommitError and GitError.
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
    """Return the digest of a file as git would check it out, or None if a filter fails."""
    try:
        data = git_as_owner(repository.root, "cat-file", "--filters", f"{commit}:{repository.full(path)}")
    except CommitError:
        return None
    return digest_of(data).hex()


def store_blob(root: Path, path: str, content: bytes | Path) -> str:
    """Store a content in git, using the filters that are configured for its path. Return the blob id."""
    if isinstance(content, Path):
        # `--path` selects the filters, because the content is stored at another path.
        content = content.read_bytes() if content.stat().st_size < 1_000_000 else content
    if isinstance(content, bytes):
        printed = git_as_owner(root, "hash-object", "-w", "--stdin", f"--path={path}", stdin=content)
    else:
        printed = git_as_owner(root, "hash-object", "-w", f"--path={path}", "--", str(content.resolve()))
    return printed.decode().strip()


def is_on_disk(file: Path, content: bytes | Path | None) -> bool:
    """Whether a file has the given content.

    None means that the file is missing. A path means the content of the file at that path.
    """
    try:
        if content is None:
            return not os.path.lexists(file)
        if isinstance(content, Path):
            return file.samefile(content) or filecmp.cmp(file, content, shallow=False)
        return file.read_bytes() == content
    except OSError:
        return False
