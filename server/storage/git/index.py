"""The index of a repository: changed for some files, under the lock that keeps git commands apart.

The lock is a link to a file of ours, by which one is known that a killed process has left behind. Where the
file system has no hard links, it is made as git makes its own, and known by holding the same bytes.
"""

import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from server.errors import CommitError
from server.storage.files import FileMark, file_mark_of
from server.storage.git.command import MAX_PATH_ARGUMENTS, git_as_owner
from server.storage.git.repository import Repository, Staged, Tree, git_lock, is_old

_INDEX_COPY, OWN_INDEX = "bifolio-index", "bifolio-commit-index"  # in the folder of the repository
LOCKED_MESSAGE = "another git command has locked the index (.git/index.lock)"
Identity = tuple[int, int] | None  # of a file: its device and its number there
_POLL_INTERVAL_S = 0.01
MAX_ATTEMPTS = 3  # Attempts to copy the index while another process changes it.


class LockedIndex:
    """The index of a repository while nobody else may change it, and what it is to be."""

    def __init__(self, repository: Repository, new: Path, before: FileMark | None) -> None:
        """`before`: the index that there is."""
        self.repository, self.before = repository, before
        self.lock = repository.folder / "index.lock"
        self._new = new

    def move_head(
        self,
        head: str,
        commit: str,
        environment: Mapping[str, str],
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Let the branch, or HEAD where that is detached, go on from a commit to the next, and the index.

        The environment says who does that. `names` are to lead to commits as well, in the same step.
        """
        lines = [f"update HEAD {commit} {head or self.repository.nothing}"]
        lines += [f"update {name} {to}" for name, to in names.items()]
        given = "".join(f"{line}\n" for line in lines).encode()
        command = ("update-ref", "-m", "bifolio: commit", "--stdin")
        git_as_owner(self.repository.root, *command, given=given, environment=environment)
        self.replace()

    def replace(self) -> None:
        """Let the index be what it is to be."""
        self.lock.replace(self.repository.index)

    def release(self) -> None:
        """Let the index be as it is, and others change it."""
        self.lock.unlink()


@contextmanager
def locked_index(repository: Repository, changed: Tree) -> Iterator[LockedIndex]:
    """Hold the lock of the index, with one ready in which some files are as given, all others as they are.

    Raises CommitError where somebody else holds it.
    """
    copy, lock = repository.folder / _INDEX_COPY, repository.folder / "index.lock"
    try:
        for _ in range(MAX_ATTEMPTS):
            before = copy_index(repository, copy)
            set_files(repository, changed, copy)
            own = _take(copy, lock)
            if file_mark_of(repository.index) == before:
                break
            lock.unlink()
        else:
            raise CommitError("the index is changed all the time", overtaken=True)
        locked = LockedIndex(repository, copy, before)
        try:
            yield locked
        finally:
            if _identity(lock) == own:  # Once it is the index, the next lock is of somebody else.
                lock.unlink()
    finally:
        copy.unlink(missing_ok=True)


def wait_for_index(repository: Repository, deadline: float) -> None:
    """Wait while a git command has locked the index. Raises CommitError after the deadline.

    A lock that is old was left behind, most likely, and is not waited for.
    """
    while (lock := git_lock(repository.folder)) is not None:
        if time.monotonic() > deadline or is_old(lock):
            raise CommitError(LOCKED_MESSAGE)
        time.sleep(_POLL_INTERVAL_S)


def may_be_left(folder: Path) -> bool:
    """Whether a process of ours has the index of the repository at `folder` locked, or was killed with it."""
    return (folder / _INDEX_COPY).exists()


def remove_own_lock(repository: Repository) -> None:
    """Remove the lock of the index that a killed process of ours has left."""
    copy, lock = repository.folder / _INDEX_COPY, repository.folder / "index.lock"
    if _is_left(copy, lock):
        lock.unlink()
    for name in (_INDEX_COPY, OWN_INDEX):
        (repository.folder / name).unlink(missing_ok=True)
        with suppress(FileNotFoundError):
            (repository.folder / f"{name}.lock").unlink()


def is_own_lock(folder: Path) -> bool:
    """Return whether a process of this server holds the index lock of the repository at `folder`."""
    return _is_left(folder / _INDEX_COPY, folder / "index.lock")


def wait_for_other_lock(folder: Path, seconds: float) -> None:
    """Wait while a git command has locked the index of the repository at `folder`, up to some seconds."""
    deadline = time.monotonic() + seconds
    while git_lock(folder) and not is_own_lock(folder) and time.monotonic() < deadline:
        time.sleep(_POLL_INTERVAL_S)


def written_by_git(repository: Repository, paths: list[str]) -> dict[str, Staged]:
    """Return those of some files that git was the last to write, each as the index has it.

    git notes the times and inode of a file that it writes, and of one that `git status` or `git add` has
    looked at. They are others once somebody else has written it. Raises CommitError.
    """
    if not paths:
        return {}
    root, some = repository.root, paths if len(paths) <= MAX_PATH_ARGUMENTS else []
    printed = git_as_owner(root, "ls-files", "--stage", "-z", "--", *some)
    differing = git_as_owner(root, "diff-files", "--name-only", "--relative", "-z", "--", *some)
    others = set(os.fsdecode(differing).split("\0"))
    wanted, found = set(paths) - others, {}
    for line in filter(None, os.fsdecode(printed).split("\0")):
        about, _, path = line.partition("\t")
        mode, id_, _stage = about.split()
        if path in wanted:
            found[path] = Staged(mode, id_)
    return found


def copy_index(repository: Repository, copy: Path) -> FileMark | None:
    """Copy the index; its mark. With its time, by which git knows what it has to look at again."""
    copy.unlink(missing_ok=True)  # It may be a link to the index itself.
    before = file_mark_of(repository.index)
    if before:
        shutil.copy2(repository.index, copy)
    return before


def set_files(repository: Repository, changed: Tree, index: Path) -> None:
    """Let an index have some files as given."""
    lines = []
    for path, file in changed.items():
        mode, id_ = (file.mode, file.id) if file else ("0", repository.nothing)
        lines.append(f"{mode} {id_}\t".encode() + os.fsencode(repository.full(path)) + b"\0")
    environment = {"GIT_INDEX_FILE": str(index)}
    options = ("--add", "--replace", "-z", "--index-info")
    git_as_owner(repository.root, "update-index", *options, given=b"".join(lines), environment=environment)


def _take(copy: Path, lock: Path) -> Identity:
    """Take the lock of the index, which holds what a file of ours does from then on; which file it is.

    Raises CommitError where somebody else has it.
    """
    try:
        try:
            os.link(copy, lock)
        except FileExistsError:
            raise
        except OSError:  # The file system has no hard links.
            _copy_new(copy, lock)
    except FileExistsError as error:
        raise CommitError(LOCKED_MESSAGE, overtaken=True) from error
    except OSError as error:
        raise CommitError(f"the index can't be locked: {error.strerror}") from error
    return _identity(lock)


def _copy_new(source: Path, target: Path) -> None:
    """Copy a file to where none is, synced, with its times. Raises FileExistsError where there is one."""
    data = source.read_bytes()  # Beforehand, since a lock that is not yet written is known to nobody.
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
    """Which file is at a path; None where there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _is_left(copy: Path, lock: Path) -> bool:
    """Whether a lock is the one that a killed process has made of its copy of the index."""
    try:
        return copy.samefile(lock) or copy.read_bytes() == lock.read_bytes()
    except OSError:
        return False
