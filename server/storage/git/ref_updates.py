"""Records of running ref updates, used to remove the locks that a killed git command leaves.

git locks a ref while it moves it. If it fails, it removes its locks, but not if it is killed.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from server.errors import CommitError
from server.storage.file_lock import FileLock
from server.storage.git.command import was_git_killed
from server.storage.git.repository import Location, location

_RECORD_PREFIX = "bifolio-refs-"  # prefix of the records' file names in the repository's folder
# If a lock on a ref is older than this, it was left by a killed process, because git holds such locks for
# only milliseconds.
REF_LOCK_AGE_S = 2.0
_RECORD_LOCK_TIMEOUT_S = 1.0
_REF_FOLDERS = ("refs/heads", "refs/bifolio")  # folders of the refs that Bifolio moves


@contextmanager
def recorded_ref_update(root: Path, refs: Mapping[str, str]) -> Iterator[None]:
    """Context manager: run one git command that moves `refs`, and remove its locks if it is killed.

    `refs` maps the full name of each ref to its new commit, or to "" if it is deleted. If the locks can't be
    removed yet, or if this process is killed too, `remove_left_ref_locks` removes them later.
    """
    place = location(root)
    record = _create_record(place.folder, refs) if place else None
    is_finished = True
    try:
        yield
    except BaseException:
        if place and record and was_git_killed():
            is_finished = _lock_in_the_way(place, record.path, has_git_ended=True) is None
        raise
    finally:
        if record:
            if is_finished:
                record.path.unlink(missing_ok=True)
            record.release()


def remove_left_ref_locks(root: Path) -> None:
    """Remove the locks of git commands that were killed while they moved a ref.

    Raises CommitError if such a command may still be running.
    """
    place = location(root)
    for path in _records(place.folder) if place else ():
        record = FileLock(path)
        with record.held() as is_abandoned:  # Otherwise, its process is still waiting for git.
            if place and is_abandoned:
                if lock := _lock_in_the_way(place, path):
                    message = f"a git command has locked a branch ({_display_path(place, lock)})"
                    raise CommitError(message, overtaken=True)
                path.unlink(missing_ok=True)


def find_ref_lock(root: Path, *refs: str) -> str:
    """Return the path of an existing lock on HEAD or on one of `refs`, such as `.git/HEAD.lock`, or ""."""
    place = location(root)
    locks = [_lock_of(place, name) for name in ("HEAD", *refs)] if place else []
    return next((_display_path(place, lock) for lock in locks if place and lock.exists()), "")


def has_ref_records(folder: Path) -> bool:
    return bool(_records(folder))


def _records(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"{_RECORD_PREFIX}*"))


def _create_record(folder: Path, refs: Mapping[str, str]) -> FileLock | None:
    name = f"{_RECORD_PREFIX}{time.time_ns()}-{os.getpid()}-{threading.get_ident()}"
    record = FileLock(folder / name)
    lines = "".join(f"{name} {commit}\n" for name, commit in refs.items())
    with suppress(OSError):  # If .git can't be written, git itself reports this.
        if record.acquire(_RECORD_LOCK_TIMEOUT_S):
            os.write(record.descriptor, lines.encode(errors="surrogateescape"))
            return record
    with suppress(OSError):
        record.path.unlink(missing_ok=True)
    record.release()
    return None


def _lock_in_the_way(place: Location, record: Path, *, has_git_ended: bool = False) -> Path | None:
    """Remove the locks of a recorded update. Return a lock that can't be removed yet, or None.

    A lock belongs to the update if it contains the update's commit. Only the lock on HEAD is always empty.
    """
    began_ns, own, unclear = record.stat().st_mtime_ns, list[Path](), list[Path]()
    for name, commit in _recorded_refs(place, record).items():
        lock = _lock_of(place, name)
        with suppress(OSError):
            content = lock.read_text().strip()
            if lock.stat().st_mtime_ns < began_ns:
                continue
            if content and commit not in (content, None):
                return lock  # Another git command holds it, and perhaps the other locks, too.
            (own if content else unclear).append(lock)
    head = _lock_of(place, "HEAD")
    if own and head in unclear:  # git locks HEAD first.
        unclear.remove(head)
        own.append(head)
    if not has_git_ended:
        own, unclear = [], [*own, *unclear]
    young = next((lock for lock in unclear if _is_young(lock)), None)
    for lock in own if young else (*own, *unclear):
        lock.unlink(missing_ok=True)
    return young


def _recorded_refs(place: Location, record: Path) -> Mapping[str, str | None]:
    lines = record.read_text(errors="surrogateescape").splitlines()
    if lines:
        return {name: commit for name, _, commit in (line.partition(" ") for line in lines)}
    # A power failure can leave an empty record.
    locks = (lock for folder in _REF_FOLDERS for lock in (place.common / folder).rglob("*.lock"))
    return {"HEAD": None} | {str(lock.relative_to(place.common).with_suffix("")): None for lock in locks}


def _lock_of(place: Location, name: str) -> Path:
    return (place.folder if name == "HEAD" else place.common) / f"{name}.lock"


def _display_path(place: Location, lock: Path) -> str:
    # Clients may see this path, so it does not reveal where the repository is.
    folder = place.folder if lock.is_relative_to(place.folder) else place.common
    return f"{folder.name}/{lock.relative_to(folder)}"


def _is_young(lock: Path) -> bool:
    try:
        return 0 <= time.time_ns() - lock.stat().st_mtime_ns < REF_LOCK_AGE_S * 1e9
    except OSError:
        return False
