"""Rules for committing a write after other people have committed to the same file."""

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
from server.storage.git.full_disk import write_objects_as_owner
from server.storage.git.own_commits import DELETED, OwnVersion
from server.storage.git.refs import are_commits, is_ancestor
from server.storage.git.repository import GitFile, Repository

MISSING = ""  # used instead of a digest if the file does not exist
# If more commits than this changed a file, only the newest are compared with the digests.
MAX_COMPARED_COMMITS = 50


@dataclass(frozen=True, slots=True)
class KnownVersions:
    """Versions of a file that Bifolio has written or read.

    `digests` identify the versions up to and including the write, and `later` those from later writes. `own`
    contains versions whose writes are no longer in the commit queue.
    """

    commit: str
    digests: Collection[str] = ()
    later: Collection[str] = ()
    own: Collection[OwnVersion] = ()
    write: str = ""


class OthersCommits(Enum):
    """What other people have committed to a file since Bifolio wrote it."""

    NOTHING_NEWER = "nothing, or only versions that Bifolio has written before or after the write"
    THE_WRITE = "the version that was written"
    ANOTHER_VERSION = "a version that is unrelated to the write"


def committed_by_others(
    repository: Repository, path: str, content: bytes | Path | None, basis: KnownVersions, head: str
) -> OthersCommits:
    """Return what other people have committed to a file since Bifolio wrote `content`.

    The versions in `basis` count as Bifolio's own. Raises CommitError or GitError if git fails.
    """
    root = repository.root
    if not basis.commit or basis.commit == head or is_on_disk(root / path, content):
        return OthersCommits.NOTHING_NEWER
    # If history was rewritten, the commit may be missing.
    if not head or not are_commits(root, basis.commit):
        return OthersCommits.NOTHING_NEWER
    since = ("--end-of-options", f"{basis.commit}..{head}")
    commits = git_or_fail(root, "log", "--format=%H", *since, "--", path).split()
    if not commits:
        return OthersCommits.NOTHING_NEWER
    written = store_blob(root, path, content) if content is not None else DELETED
    result = OthersCommits.NOTHING_NEWER
    own_commits = {own.commit: own.write for own in basis.own if own.commit}
    earlier_blobs = {own.blob for own in basis.own if own.write < basis.write}
    if not is_ancestor(root, basis.commit, head):
        # History was rewritten, for example by `git commit --amend`. New commits may contain old versions.
        earlier_blobs.add(_blob(repository.versions(basis.commit, [path])[path]))
    is_earlier = False
    for commit in commits[:MAX_COMPARED_COMMITS]:  # newest first
        version = repository.versions(commit, [path])[path]
        write = own_commits.get(commit)
        if write is not None and write < basis.write:
            return result
        if write == basis.write or _blob(version) == written:
            return OthersCommits.THE_WRITE
        # An earlier version may be a revert of the write, so older commits are searched for the write.
        if is_earlier or _blob(version) in earlier_blobs:
            is_earlier = True
            continue
        digests = _digests(repository, commit, path, version)
        is_earlier = not digests.isdisjoint(basis.digests)
        if not is_earlier and digests.isdisjoint(basis.later):
            result = OthersCommits.ANOTHER_VERSION
    return result


def _blob(version: GitFile | None) -> str:
    return version.id if version else DELETED


def _digests(repository: Repository, commit: str, path: str, version: GitFile | None) -> set[str]:
    if version is None:
        return {MISSING}
    name, digests = f"{commit}:{repository.full(path)}", set[str]()
    for filters in ("--filters", "blob"):  # the file's content as checked out, and as stored in git
        with suppress(CommitError):  # A filter may fail.
            digests.add(digest_of(git_as_owner(repository.root, "cat-file", filters, name)).hex())
    return digests


def is_replaced_version_on_disk(file: Path, basis: KnownVersions) -> bool:
    try:
        return digest_of(file.read_bytes()).hex() in basis.digests
    except OSError:
        return False


def store_blob(root: Path, path: str, content: bytes | Path) -> str:
    """Store `content`, given as bytes or as the path of a file, as a git blob. Return the blob's id.

    The git filters for `path` are applied.
    """
    if isinstance(content, Path):
        # The file has a different name, so `--path` selects the filters.
        content = content.read_bytes() if content.stat().st_size < 1_000_000 else content
    if isinstance(content, bytes):
        file, stdin = ["--stdin"], content
    else:
        file, stdin = ["--", str(content.resolve())], b""
    printed = write_objects_as_owner(root, "hash-object", "-w", f"--path={path}", *file, stdin=stdin)
    return printed.decode().strip()


def is_on_disk(file: Path, content: bytes | Path | None) -> bool:
    """Return True if `file` contains the bytes `content`.

    If `content` is a path, compare the two files. If it is None, return True if `file` does not exist.
    """
    try:
        if content is None:
            return not os.path.lexists(file)
        if isinstance(content, Path):
            return file.samefile(content) or filecmp.cmp(file, content, shallow=False)
        return file.read_bytes() == content
    except OSError:
        return False
