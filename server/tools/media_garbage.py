"""Deletion of bucket objects that no file or commit refers to."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from server.errors import GitError, GitTimeoutError, SetupError
from server.paths import UPLOADS
from server.storage.files import walk
from server.storage.git.command import git_bytes, git_or_fail
from server.storage.git.remote import fetch_all
from server.storage.git.repository import git_folder, is_shallow
from server.storage.git.tree import read_blobs
from server.storage.media import SIDECAR_SUFFIX

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket, ListedObject

Progress = Callable[[int, int], None]  # (done, total)
GRACE_PERIOD = timedelta(hours=24)
BATCH_BLOBS = 500  # number of blobs that each git process reads
BATCH_OBJECTS = 100  # number of objects that each request deletes
HISTORY_TIMEOUT_S = 600.0  # time limit for listing the whole history
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_KEY = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})(\.[a-z0-9]{1,12})?")
NOTHING_REFERENCED = "the site does not refer to any of the objects in the bucket"


@dataclass(frozen=True, slots=True)
class Garbage:
    """The objects in a bucket that can be deleted, and the numbers of all, referenced and recent objects.

    `recent` is the number of unreferenced objects that are still too new to be deleted.
    """

    objects: int
    referenced: int
    recent: int
    unreferenced: Sequence["ListedObject"]

    @property
    def bytes(self) -> int:
        return sum(one.size for one in self.unreferenced)


def find_garbage(root: Path, bucket: "Bucket", grace: timedelta = GRACE_PERIOD) -> Garbage:
    """Find the unreferenced objects in a bucket that are older than `grace`.

    Raises SetupError if the git history is incomplete or no object is referenced. Raises RemoteError if a
    remote can't be fetched.
    """
    # Objects are listed first, so that objects added later are kept.
    listed = [one for one in bucket.list_objects() if _KEY.fullmatch(one.key)]
    names = referenced_hashes(root)
    used = [one for one in listed if _hash(one) in names]
    if listed and not used:
        fix = (
            "check whether media.store is correct for this site; to remove all objects, use a different tool"
        )
        raise SetupError("media gc", None, NOTHING_REFERENCED, fix)
    unused = [one for one in listed if _hash(one) not in names]
    old = [one for one in unused if _is_old(one.modified, grace)]
    return Garbage(len(listed), len(used), len(unused) - len(old), old)


def delete_garbage(
    bucket: "Bucket", garbage: Garbage, progress: Progress, grace: timedelta = GRACE_PERIOD
) -> int:
    """Delete the unreferenced objects, except those that were re-uploaded after they were listed.

    Return the number of deleted objects.
    """
    deleted, keys = 0, [one.key for one in garbage.unreferenced]
    for start in range(0, len(keys), BATCH_OBJECTS):
        progress(start, len(keys))
        part = [key for key in keys[start : start + BATCH_OBJECTS] if _is_still_old(bucket, key, grace)]
        bucket.delete(part)
        deleted += len(part)
    progress(len(keys), len(keys))
    return deleted


def referenced_hashes(root: Path) -> set[str]:
    """Return the hashes of all objects that media descriptions refer to, on disk and in any commit.

    All remotes are fetched first. Raises SetupError if the history is incomplete, and RemoteError or GitError
    if a git command fails.
    """
    found = {hash_ for path in walk(root, [UPLOADS]).files for hash_ in _references_on_disk(root, path)}
    if git_folder(root) is None:
        return found
    if is_shallow(root):
        fix = "run git fetch --unshallow"
        raise SetupError(
            "media gc", None, "this clone is shallow, so it does not contain the whole history", fix
        )
    for remote in git_or_fail(root, "remote").split():
        fetch_all(root, remote)
    ids = _description_blobs(root)
    for start in range(0, len(ids), BATCH_BLOBS):
        for data in read_blobs(root, ids[start : start + BATCH_BLOBS]):
            if data is None:
                raise _incomplete_history_error()
            found.update(one.decode() for one in _HASH.findall(data))
    return found


def _references_on_disk(root: Path, path: str) -> Iterator[str]:
    if path.endswith(SIDECAR_SUFFIX):
        yield from (one.decode() for one in _HASH.findall((root / path).read_bytes()))


def _description_blobs(root: Path) -> list[str]:
    blobs = (*_objects(root), *_changed_blobs(root), *_staged(root))
    inside, ending = f"{UPLOADS}/".encode(), SIDECAR_SUFFIX.encode()
    return sorted({id_.decode() for id_, path in blobs if path.endswith(ending) and inside in path})


def _objects(root: Path) -> Iterator[tuple[bytes, bytes]]:
    listed = _git_output(root, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects")
    for line in listed.split(b"\n"):
        id_, _, path = line.partition(b" ")
        yield id_, path


def _changed_blobs(root: Path) -> Iterator[tuple[bytes, bytes]]:
    changes = (
        "--raw",
        "-c",
        "--root",
        "--no-renames",
        "--no-abbrev",
        "--no-show-signature",
        "--format=",
        "-z",
    )
    words = iter(_git_output(root, "log", "--all", "--reflog", *changes).split(b"\0"))
    for word in words:
        # The line contains modes and ids, of which the last is the id of the new blob.
        if word.lstrip(b"\n").startswith(b":"):
            yield word.split()[-2], next(words)


def _staged(root: Path) -> Iterator[tuple[bytes, bytes]]:
    for word in _git_output(root, "ls-files", "--stage", "--full-name", "-z").split(b"\0"):
        about, _, path = word.partition(b"\t")
        if path:
            yield about.split()[1], path


def _git_output(root: Path, *arguments: str) -> bytes:
    try:
        printed = git_bytes(root, *arguments, seconds=HISTORY_TIMEOUT_S)
    except GitTimeoutError:
        raise
    except GitError as error:
        raise _incomplete_history_error() from error
    if printed is None:
        raise _incomplete_history_error()
    return printed


def _incomplete_history_error() -> SetupError:
    fix = "clone the repository without --filter, and check it with git fsck"
    return SetupError("media gc", None, "some git objects are missing from this clone", fix)


def _hash(listed: "ListedObject") -> str:
    return listed.key.partition("/")[2][:64]


def _is_old(modified: datetime, grace: timedelta) -> bool:
    return datetime.now(UTC) - modified >= grace


def _is_still_old(bucket: "Bucket", key: str, grace: timedelta) -> bool:
    modified = bucket.modified(key)
    return modified is not None and _is_old(modified, grace)
