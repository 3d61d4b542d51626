"""Detection of uncommitted writes that a git command has reverted. These writes are repeated.

`git reset --hard`, `git checkout PATH` and `git restore` overwrite files that differ from the index. These
include uncommitted writes. After a response was sent, its write must not be lost, so it is repeated. Edits by
hand are preserved, even if they undo a write.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path

from server.site.commits.contents import contents_of
from server.site.contents import Contents
from server.storage.files import Signature, signature_of
from server.storage.git.commit_queue import Pending
from server.storage.git.index import written_by_git
from server.storage.git.refs import find_commit
from server.storage.git.repository import Repository
from server.storage.git.written import Basis, ByOthers, committed_by_others, is_on_disk
from server.storage.intent import Write
from server.storage.media import SIDECAR_SUFFIX


def is_as_written(root: Path, writes: Iterable[Write]) -> bool:
    """Whether the content of all files on disk is the content in the given writes."""
    return all(is_on_disk(root / path, content) for path, content in contents_of(root, writes).items())


def unseen_writes(contents: Contents, pending: Iterable[Pending]) -> dict[str, Pending]:
    """Return the last write to each file on disk that has neither the written nor the served content, by
    path.

    If a file has the served content, it was already read, and treated as an edit by hand.
    """
    last = {path: write for write in pending for path in write.files}
    return {
        path: write
        for path, write in last.items()
        if signature_of(contents.root / path) != _shown_signature(contents, path)
        and not is_on_disk(contents.root / path, write.files[path])
    }


def reverted_writes(repository: Repository, unseen: Mapping[str, Pending]) -> list[Write]:
    """Return writes that restore the files that git has reverted to a committed version.

    A file is skipped if others have committed the write or a newer version. Raises CommitError and GitError.
    """
    root, head, writes = repository.root, repository.head(), []
    by_git = written_by_git(repository, list(unseen))
    bases = {unseen[path].base for path in by_git} - {"", head}
    commits = [head, *(base for base in bases if find_commit(root, base))]
    trees = [repository.tree(commit, list(by_git)) for commit in commits]
    for path, file in by_git.items():
        write = unseen[path]
        # If this version is in no commit, the user has staged it.
        if not any(tree.get(path) == file for tree in trees):
            continue
        basis = Basis(write.base, {write.replaced[path]} if path in write.replaced else ())
        by_others = committed_by_others(repository, path, write.files[path], basis, head)
        if by_others is ByOthers.NOTHING_NEWER:
            writes.append(_write(root, path, write.files[path]))
    return writes


def _write(root: Path, path: str, content: bytes | Path | None) -> Write:
    before = signature_of(root / path)
    if isinstance(content, Path):
        return Write(path, None, before, content)
    try:
        return Write(path, content, before, read=(root / path).read_bytes())
    except OSError:  # git has just removed the file. The journal rejects the write if it comes back.
        return Write(path, content, None)


def _shown_signature(contents: Contents, path: str) -> Signature | None:
    """Return the signature of a file as it is currently served. Return None if the file is not served."""
    if entry := contents.entries.get(path):
        return entry.signature
    if path in contents.configuration.mark:
        return contents.configuration.mark[path]
    described = contents.entries.get(path.removesuffix(SIDECAR_SUFFIX))
    return described.beside if described else None
