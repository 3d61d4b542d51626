"""Uncommitted writes that a git command such as `git reset --hard` has overwritten."""

import os
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from server.site.commits.contents import new_contents
from server.site.commits.grouping import Group
from server.site.contents import Contents
from server.storage.files import Signature, signature_of
from server.storage.git.commit_queue import PendingWrite
from server.storage.git.index import index_entries_written_by_git
from server.storage.git.own_commits import OwnVersion
from server.storage.git.refs import find_commit
from server.storage.git.repository import Repository
from server.storage.git.written import (
    KnownVersions,
    OthersCommits,
    committed_by_others,
    is_on_disk,
    is_replaced_version_on_disk,
)
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX


def is_as_written(root: Path, writes: Iterable[Write]) -> bool:
    return all(is_on_disk(root / path, content) for path, content in new_contents(root, writes).items())


@dataclass(frozen=True, slots=True)
class OverwrittenWrite:
    """An uncommitted write to a file that has since changed on disk.

    `basis` contains the versions of the file that Bifolio knows, from before and after the write.
    """

    content: bytes | Path | None
    basis: KnownVersions


def overwritten_writes(
    contents: Contents, pending: Iterable[PendingWrite], own_versions: Mapping[str, Collection[OwnVersion]]
) -> dict[str, OverwrittenWrite]:
    """Return, by path, the uncommitted writes whose files have since changed on disk.

    A write is left out if the version on disk is already being served. `own_versions` come from writes that
    are no longer in the queue.
    """
    group = Group(list(pending))
    unseen = {
        path: content
        for path, content in group.files.items()
        if signature_of(contents.root / path) != _served_signature(contents, path)
        and not is_on_disk(contents.root / path, content)
    }
    bases = group.known_versions([], own_versions) if unseen else {}
    return {path: OverwrittenWrite(content, bases[path]) for path, content in unseen.items()}


def reverted_writes(repository: Repository, overwritten: Mapping[str, OverwrittenWrite]) -> list[Write]:
    """Return writes that restore the files which git has reset.

    Raises CommitError or GitError if a git command fails.
    """
    root, head, writes = repository.root, repository.head(), []
    by_git = index_entries_written_by_git(repository, list(overwritten))
    bases = {overwritten[path].basis.commit for path in by_git} - {"", head}
    commits = [head, *(base for base in bases if find_commit(root, base))]
    trees = [repository.tree(commit, list(by_git)) for commit in commits]
    for path, file in by_git.items():
        content, basis = overwritten[path].content, overwritten[path].basis
        # Ignore a version that is in no commit: somebody has staged it, maybe after editing the written file.
        is_earlier = any(tree.get(path) == file for tree in trees) or is_replaced_version_on_disk(
            root / path, basis
        )
        try:
            newer = committed_by_others(repository, path, content, basis, head) if is_earlier else None
        except FileNotFoundError:  # another process has just committed the write and deleted its copy
            continue
        if newer is OthersCommits.NOTHING_NEWER:
            writes.append(_write(root, path, content))
    return [*writes, *_restore_missing_files(root, writes, overwritten)]


def _restore_missing_files(
    root: Path, reverted: Collection[Write], overwritten: Mapping[str, OverwrittenWrite]
) -> list[Write]:
    """Return writes that restore files which git deleted while it reverted other files of the same write.

    For example, `git stash -u` removes new files. If they were not restored, only half of a rename would be
    repeated.
    """
    names = {overwritten[write.path].basis.write for write in reverted}
    paths = {write.path for write in reverted}
    return [
        _write(root, path, one.content)
        for path, one in overwritten.items()
        if path not in paths
        and one.basis.write in names
        and one.content is not None
        and not os.path.lexists(root / path)
    ]


def _write(root: Path, path: str, content: bytes | Path | None) -> Write:
    before = signature_of(root / path)
    if isinstance(content, Path):
        return Write(path, None, before, content)
    try:
        return Write(path, content, before, read=(root / path).read_bytes())
    except OSError:  # git has just deleted the file; if it is created again, the journal rejects this write
        return Write(path, content, None)


def _served_signature(contents: Contents, path: str) -> Signature | None:
    if entry := contents.entries.get(path):
        return entry.signature
    if path in contents.configuration.signatures:
        return contents.configuration.signatures[path]
    described = contents.entries.get(path.removesuffix(SIDECAR_SUFFIX))
    return described.beside if described else None
