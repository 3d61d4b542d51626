"""Recorder of the file versions in this server's commits, for use by later writes."""

from collections.abc import Collection
from types import MappingProxyType

from server.site.commits.grouping import Group
from server.storage.git.commit import is_nested
from server.storage.git.commit_queue import CommitQueue
from server.storage.git.own_commits import DELETED, OwnVersion
from server.storage.git.repository import Repository, Tree
from server.storage.git.written import KnownVersions, store_blob


def known_versions_of(queue: CommitQueue, group: Group) -> dict[str, KnownVersions]:

    # Read `pending` first: when a write leaves the queue, its versions are already in `own_commits`.
    pending = queue.pending()
    return group.known_versions(pending, queue.own_commits.by_path())


def record_own_versions(
    queue: CommitQueue,
    repository: Repository,
    group: Group,
    commit: str = "",
    files: Tree = MappingProxyType({}),
    hook_paths: Collection[str] = (),
) -> None:
    """Record the committed versions of the files that later writes in the queue change again.

    The versions of the files in `hook_paths` are always recorded, so that the commit is recognized even if
    this process is killed. Raises CommitError or OSError if a version can't be stored.
    """
    root, last = repository.root, group.last_by_path
    later = list(group.later_writes(queue.pending(), files))
    versions = {}
    for path in {*hook_paths, *(path for path, _ in later)}:
        write = last.get(path, group.last)
        if path in files:
            file = files[path]
            versions[path] = OwnVersion(write.name, file.id if file else DELETED, commit)
        elif not is_nested(root, path):
            content = write.files[path]
            blob = DELETED if content is None else store_blob(root, path, content)
            versions[path] = OwnVersion(write.name, blob)
    if versions:
        queue.own_commits.record(versions, max(group.last.name, *(write.name for _, write in later)))
