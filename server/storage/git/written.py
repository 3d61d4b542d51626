"""Comparison of a written file with the file on disk, and with the versions that other people have committed
since the write.

While a write is waiting to be committed, other people may commit changes to the same file. The functions
determine whether the write must still be committed.
"""

import filecmp
import os
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from server.errors import CommitError
from server.storage.files import digest_of
from server.storage.git.command import git_as_owner, git_or_fail
from server.storage.git.refs import are_commits
from server.storage.git.repository import Repository, Staged

MISSING = ""  # used instead of a digest if the file does not exist
# If more commits than this changed a file, their versions are not compared with the digests.
MAX_COMPARED_COMMITS = 50


@dataclass(frozen=True, slots=True)
class Basis:
    """The versions of a file that a write replaced.

    `commit` is the id of the commit that was checked out at the time, or "" if unknown. `digests` are the
    hexadecimal digests of earlier versions of the file. If one of these versions is committed later, that
    commit does not contain the write. `later` are the digests of versions that Bifolio has written after it.
    If somebody commits one of them, the write itself still needs a commit.
    """

    commit: str
    digests: Collection[str] = ()
    later: Collection[str] = ()


class ByOthers(Enum):
    """What other people have committed to a file since a write: nothing newer, the write itself, or a
    different version.
    """

    NOTHING_NEWER = "nothing, or only versions that Bifolio has written before or after the write"
    THE_WRITE = "the version that was written"
    ANOTHER_VERSION = "a version that is unrelated to the write"


def committed_by_others(
    repository: Repository, path: str, content: bytes | Path | None, basis: Basis, head: str
) -> ByOthers:
    """Determine what other people have committed to a file since Bifolio wrote `content` to the file.

    If the file on disk still has this content, return NOTHING_NEWER. `head` is the id of the checked-out
    commit. Raises CommitError and GitError.
    """
    root = repository.root
    if not basis.commit or basis.commit == head or is_on_disk(root / path, content):
        return ByOthers.NOTHING_NEWER
    # The commit may be gone because history was rewritten.
    if not head or not are_commits(root, basis.commit):
        return ByOthers.NOTHING_NEWER
    since = ("--end-of-options", f"{basis.commit}..{head}")
    commits = git_or_fail(root, "log", "--format=%H", *since, "--", path).split()
    written = store_blob(root, path, content) if commits and content is not None else None
    result = ByOthers.NOTHING_NEWER
    for commit in commits[:MAX_COMPARED_COMMITS]:  # newest first
        version = repository.versions(commit, [path])[path]
        if (version.id if version else None) == written:
            return ByOthers.THE_WRITE
        digests = _digests(repository, commit, path, version)
        if not digests.isdisjoint(basis.digests):
            return result
        if digests.isdisjoint(basis.later):
            result = ByOthers.ANOTHER_VERSION
    return result


def _digests(repository: Repository, commit: str, path: str, version: Staged | None) -> set[str]:
    """Return the digests that a file's version in a commit can have had on disk.

    The version is compared both as it is stored in git and as git checks it out, because the replaced file
    could have had either form.
    """
    if version is None:
        return {MISSING}
    name, digests = f"{commit}:{repository.full(path)}", set[str]()
    for filters in ("--filters", "blob"):
        with suppress(CommitError):  # A filter may fail.
            digests.add(digest_of(git_as_owner(repository.root, "cat-file", filters, name)).hex())
    return digests


def is_replaced_on_disk(file: Path, basis: Basis) -> bool:
    """Whether a file on disk has one of the versions in `basis`, which a write has replaced."""
    try:
        return digest_of(file.read_bytes()).hex() in basis.digests
    except OSError:
        return False


def store_blob(root: Path, path: str, content: bytes | Path) -> str:
    """Store `content` in git as a blob for the file at `path`, and return the blob's id.

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

    If `content` is a path, the file is compared with the file at that path. If `content` is None, return True
    if `file` is missing.
    """
    try:
        if content is None:
            return not os.path.lexists(file)
        if isinstance(content, Path):
            return file.samefile(content) or filecmp.cmp(file, content, shallow=False)
        return file.read_bytes() == content
    except OSError:
        return False
