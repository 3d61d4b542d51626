"""Changes to git's index under its lock. The functions raise CommitError if they fail."""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from server.errors import CommitError
from server.storage.files import FileMark, file_mark_of
from server.storage.git.command import MAX_PATH_ARGUMENTS, git_as_owner, was_git_killed
from server.storage.git.ref_updates import has_ref_records, recorded_ref_update, remove_left_ref_locks
from server.storage.git.refs import BRANCH_PREFIX, checked_out_branch
from server.storage.git.repository import GitFile, Repository, Tree, git_lock, is_stale_lock

_INDEX_COPY, OWN_INDEX = "bifolio-index", "bifolio-commit-index"  # file names in the repository's folder
LOCKED_MESSAGE = "another git command has locked the index (.git/index.lock)"
Identity = tuple[int, int] | None  # a file's device and inode
_POLL_INTERVAL_S = 0.01
MAX_ATTEMPTS = 3  # Number of attempts to copy the index while other processes change it.


class LockedIndex:
    """Git's index while it is locked. `before` is the mark of the old index file."""

    def __init__(self, repository: Repository, new: Path, before: FileMark | None) -> None:
        self.repository, self.before = repository, before
        self.lock = repository.folder / "index.lock"
        self._new = new

    def move_head(
        self,
        head: str,
        commit: str,
        environment: Mapping[str, str],
        other_refs: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Move the branch from `head` to `commit`, set `other_refs` to their commits, and replace the index.

        Raises CommitError if the branch is no longer at `head`.
        """
        lines = [f"update HEAD {commit} {head or self.repository.null_id}"]
        lines += [f"update {name} {to}" for name, to in other_refs.items()]
        stdin = "".join(f"{line}\n" for line in lines).encode()
        command = ("update-ref", "-m", "bifolio: commit", "--stdin")
        branch = checked_out_branch(self.repository.root)
        refs = {"HEAD": commit, **({BRANCH_PREFIX + branch: commit} if branch else {}), **other_refs}
        try:
            with recorded_ref_update(self.repository.root, refs):
                git_as_owner(self.repository.root, *command, stdin=stdin, environment=environment)
        except CommitError as error:
            if was_git_killed():
                raise CommitError(str(error), overtaken=True) from error
            raise
        self.replace()

    def replace(self) -> None:
        self.lock.replace(self.repository.index)  # This also releases the lock.

    def release(self) -> None:
        self.lock.unlink()


@contextmanager
def locked_index(repository: Repository, changed: Tree) -> Iterator[LockedIndex]:
    """Lock git's index in a `with` block, and prepare a new index that contains the changed files."""
    copy, lock = repository.folder / _INDEX_COPY, repository.folder / "index.lock"
    try:
        for _ in range(MAX_ATTEMPTS):
            before = copy_index(repository, copy)
            set_files(repository, changed, copy)
            own = _acquire_lock(copy, lock)
            if file_mark_of(repository.index) == before:
                break
            lock.unlink()
        else:
            raise CommitError("other git commands repeatedly changed the git index", overtaken=True)
        locked = LockedIndex(repository, copy, before)
        try:
            yield locked
        finally:
            # Delete only the own lock: after `replace`, the lock may belong to another process.
            if _identity(lock) == own:
                lock.unlink()
    finally:
        copy.unlink(missing_ok=True)


def wait_for_index(repository: Repository, deadline: float) -> None:
    """Wait until the index is unlocked. Raises CommitError after the deadline, or if the lock is stale."""
    while (lock := git_lock(repository.folder)) is not None:
        if time.monotonic() > deadline or is_stale_lock(lock):
            raise CommitError(LOCKED_MESSAGE)
        time.sleep(_POLL_INTERVAL_S)


def may_hold_own_lock(folder: Path) -> bool:
    """Return True if Bifolio may hold the index lock or a ref's lock, or was killed while holding it."""
    return (folder / _INDEX_COPY).exists() or has_ref_records(folder)


def remove_own_lock(repository: Repository) -> None:
    """Remove the locks of Bifolio processes and git commands that were killed.

    Raises CommitError if git may be moving a branch.
    """
    copy, lock = repository.folder / _INDEX_COPY, repository.folder / "index.lock"
    remove_left_ref_locks(repository.root)
    if _is_left(copy, lock):
        lock.unlink()
    for name in (_INDEX_COPY, OWN_INDEX):
        (repository.folder / name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            (repository.folder / f"{name}.lock").unlink()


def is_own_lock(folder: Path) -> bool:
    """Return True if the index lock was created by a Bifolio process, even if that process was killed."""
    return _is_left(folder / _INDEX_COPY, folder / "index.lock")


def wait_for_other_lock(folder: Path, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while git_lock(folder) and not is_own_lock(folder) and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL_S)


def index_entries_written_by_git(repository: Repository, paths: list[str]) -> dict[str, GitFile]:
    """Return the index entries of the files in `paths` that have not changed since git wrote them."""
    if not paths:
        return {}
    # The index contains the times and inode of each file. A write by any other program changes at least one
    # of these.
    root, listed = repository.root, paths if len(paths) <= MAX_PATH_ARGUMENTS else []
    output = git_as_owner(root, "ls-files", "--stage", "-z", "--", *listed)
    differing = git_as_owner(root, "diff-files", "--name-only", "--relative", "-z", "--", *listed)
    differing_paths = set(os.fsdecode(differing).split("\0"))
    unchanged, result = set(paths) - differing_paths, {}
    for line in filter(None, os.fsdecode(output).split("\0")):
        about, _, path = line.partition("\t")
        mode, id_, _stage = about.split()
        if path in unchanged:
            result[path] = GitFile(mode, id_)
    return result


def copy_index(repository: Repository, copy: Path) -> FileMark | None:
    """Copy git's index to `copy`.

    Return the index file's mark (see `file_mark`), or None if it does not exist.
    """
    try:
        copy.unlink(missing_ok=True)  # Delete the old copy first, because it may be a hard link to the index.
        before = file_mark_of(repository.index)
        if before:
            shutil.copy2(repository.index, copy)  # Also copy the modification time, which git needs.
    except OSError as error:
        raise CommitError(f"the git index can't be copied: {error.strerror}") from error
    return before


def set_files(repository: Repository, changed: Tree, index: Path) -> None:
    """Update the `changed` files in git's index file at `index`. Files that map to None are removed."""
    lines = []
    for path, file in changed.items():
        mode, id_ = (file.mode, file.id) if file else ("0", repository.null_id)
        lines.append(f"{mode} {id_}\t".encode() + os.fsencode(repository.full(path)) + b"\0")
    environment = {"GIT_INDEX_FILE": str(index)}
    options = ("--add", "--replace", "-z", "--index-info")
    git_as_owner(repository.root, "update-index", *options, stdin=b"".join(lines), environment=environment)


def _acquire_lock(copy: Path, lock: Path) -> Identity:
    try:
        try:  # A hard link makes it possible to identify the lock of a killed Bifolio process.
            os.link(copy, lock)
        except FileExistsError:
            raise
        except OSError:  # The file system does not support hard links.
            _copy_new(copy, lock)
    except FileExistsError as error:
        raise CommitError(LOCKED_MESSAGE, overtaken=True) from error
    except OSError as error:
        raise CommitError(f"the git index can't be locked: {error.strerror}") from error
    return _identity(lock)


def _copy_new(source: Path, target: Path) -> None:
    # Read before the lock is created: after a crash, an empty lock could not be recognized as Bifolio's own.
    data = source.read_bytes()
    with target.open("xb") as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            shutil.copystat(source, target)
        except BaseException:
            target.unlink()
            raise


def _identity(path: Path) -> Identity:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_left(copy: Path, lock: Path) -> bool:
    try:
        return copy.samefile(lock) or copy.read_bytes() == lock.read_bytes()
    except OSError:
        return False
