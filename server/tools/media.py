"""Move media files into the bucket and back."""

import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING

from server.documents.document import Document
from server.errors import ConflictError, GitError, GitSlowError, MissingObjectError, SetupError
from server.formats.edits import REMOVE
from server.formats.tree import Tree
from server.paths import UPLOADS, incoming_folder
from server.service.authorship import command_authorship
from server.site.site import Site
from server.storage.bucket.keeping import Keeper
from server.storage.bucket.stored import KEY, StoredFile, StoredObject, object_of
from server.storage.document_text import changed_text, new_text
from server.storage.files import Signature, signature, walk
from server.storage.git.command import git_bytes, git_or_fail
from server.storage.git.remote import fetch_all
from server.storage.git.repository import git_folder, is_shallow
from server.storage.git.tree import read_blobs
from server.storage.images.formats import needs_formats
from server.storage.images.kinds import ImageSize
from server.storage.media import DESCRIPTION
from server.storage.read import parse
from server.write.context import Context, unreadable
from server.write.write_timestamps import known_timestamps

# --- moving ---------------------------------------------------------------------------------------

# --- moved ----------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

BATCH = 20  # files that one write of the site moves
Progress = Callable[[int, int], None]  # (done, in all)


@dataclass(frozen=True, slots=True)
class Moved:
    """How many files and bytes were moved, and the paths of those that were left, each with the reason.

    `commit` is what the last write says of its commit (`Site.write`).
    """

    files: int
    bytes: int
    left: tuple[tuple[str, str], ...] = ()
    commit: str = ""


def message_of(verb: str, where: str, count: int) -> str:
    """What the commit of a write says: `Move 20 media files to the bucket`."""
    return f"{verb} {count:,} media file{'s' * (count != 1)} {where} the bucket"


def media_of(site: Site) -> list[Document]:
    """The media files of a site, by path."""
    return sorted(site.state.snapshot.media.values(), key=lambda document: document.path)


def is_on_disk(site: Site, document: Document) -> bool:
    """Whether the content of a media file is in content/uploads/."""
    return os.path.lexists(site.root / document.path)


@contextmanager
def fetched(site: Site, bucket: "Bucket", object_: StoredObject) -> Iterator[Path]:
    """A file with the content of an object, until the end of the block. Raises BucketError and OSError."""
    with tempfile.NamedTemporaryFile(dir=incoming_folder(site.root)) as file:
        bucket.fetch(object_, file)
        file.flush()
        yield Path(file.name)


# --- pulling --------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A file whose content is on this machine now, in another place."""

    document: Document
    source: Path


def pull(site: Site, bucket: "Bucket", progress: Progress) -> Moved:
    """Put the content of all media into content/uploads/. Raises BucketError, and what a write raises."""
    waiting = [
        (one, object_)
        for one in media_of(site)
        if (object_ := object_of(one.get("provider_metadata"))) and not is_on_disk(site, one)
    ]
    count, size, left, commit = 0, 0, list[tuple[str, str]](), ""
    message = partial(message_of, "Move", "from")
    for start in range(0, len(waiting), BATCH):
        batch = list[_Fetched]()
        with ExitStack() as opened:
            for done, (document, object_) in enumerate(waiting[start : start + BATCH], start):
                progress(done, len(waiting))
                try:
                    source = opened.enter_context(fetched(site, bucket, object_))
                except MissingObjectError as error:
                    left.append((document.path, error.message))
                    continue
                batch.append(_Fetched(document, source))
                size += object_.size
            if batch:
                commit = site.write(command_authorship(site, message), _put, batch)[2]
            count += len(batch)
    progress(len(waiting), len(waiting))
    return Moved(count, size, tuple(left), commit)


def _put(batch: Sequence[_Fetched], context: Context) -> int:
    """Put files beside their descriptions, which name no object any more. Returns how many."""
    count = 0
    for one in batch:
        path, sidecar = one.document.path, one.document.path + DESCRIPTION
        if context.changeset.exists(path) or not context.changeset.exists(sidecar):
            continue  # Somebody was faster.
        with unreadable(sidecar):
            text = changed_text(sidecar, context.changeset.text(sidecar), None, {KEY: REMOVE})
        context.changeset.put(sidecar, text)
        context.changeset.put_file(path, one.source)
        count += 1
    return count


# --- pushing --------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

TRIES = 3  # how often a file is sent that somebody changes meanwhile


@dataclass(frozen=True, slots=True)
class _Sent:
    """A file whose content is in the bucket; `found` is its signature on disk, None where it is not there."""

    document: Document
    stored: StoredFile
    found: Signature | None


@dataclass(frozen=True, slots=True)
class _Batch:
    """Files that were sent, which `keep` their place on disk or not."""

    files: Sequence[_Sent]
    keep: bool


def push(site: Site, bucket: "Bucket", progress: Progress, *, keep: bool = False) -> Moved:
    """Put the content of all media into the bucket, and take it out of content/uploads/, unless to `keep` it.

    Pictures in the bucket get the formats that they lack. Raises BucketError, and what a write raises.
    """
    keeper = Keeper(bucket, site.image_cache.folder)
    waiting = [one for one in media_of(site) if is_on_disk(site, one) or _lacks_formats(one)]
    count, size, left, commit = 0, 0, list[tuple[str, str]](), ""
    message = partial(message_of, "Copy" if keep else "Move", "to")
    for start in range(0, len(waiting), BATCH):
        sent = list[_Sent]()
        for done, document in enumerate(waiting[start : start + BATCH], start):
            progress(done, len(waiting))
            try:
                one = _send(site, bucket, keeper, document, keep=keep)
            except (OSError, ConflictError, MissingObjectError) as error:
                left.append((document.path, str(error)))
                continue
            if one.found or one.stored.formats:
                sent.append(one)
        if sent:
            commit = site.write(command_authorship(site, message), _describe, _Batch(sent, keep))[2]
        count, size = count + len(sent), size + sum(one.stored.object.size for one in sent)
    progress(len(waiting), len(waiting))
    return Moved(count, size, tuple(left), commit)


def _lacks_formats(document: Document) -> bool:
    """Whether a picture in the bucket could have formats and has none."""
    width, height = document.get("width"), document.get("height")
    if document.get("formats") or not (width and height) or not object_of(document.get("provider_metadata")):
        return False
    return needs_formats(ImageSize(width, height), splitext(document.path)[1])


def _send(site: Site, bucket: "Bucket", keeper: Keeper, document: Document, *, keep: bool) -> _Sent:
    """Put a file and its formats into the bucket. Raises OSError, ConflictError and BucketError."""
    path, ending = site.root / document.path, splitext(document.path)[1]
    if not is_on_disk(site, document):
        object_ = object_of(document.get("provider_metadata"))
        assert object_
        with fetched(site, bucket, object_) as copy:
            return _Sent(document, keeper.keep(copy, ending), None)
    if path.is_symlink():
        raise ConflictError("is a link, and stays one")
    for _ in range(TRIES):
        found = signature(os.stat(path))
        stored = keeper.keep(path, ending)
        if not keep:
            _read_back(bucket, stored)
        if signature(os.stat(path)) == found:
            return _Sent(document, stored, found)
    raise ConflictError("was changed again and again meanwhile")


def _read_back(bucket: "Bucket", stored: StoredFile) -> None:
    """Raise BucketError where the bucket does not give all that a file consists of, byte for byte."""
    with Path(os.devnull).open("wb") as nothing:
        for object_ in stored.objects:
            bucket.fetch(object_, nothing)


def _describe(batch: _Batch, context: Context) -> int:
    """Let the descriptions of files name their content in the bucket, instead of the files beside them.

    Returns how many there are.
    """
    count = 0
    for one in batch.files:
        if one.found and _signature(context.changeset.root / one.document.path) != one.found:
            continue  # It was changed since, and is sent by the next push.
        _say(context, one)
        if one.found and not batch.keep:
            context.changeset.delete(one.document.path)
        count += 1
    return count


def _signature(path: Path) -> Signature | None:
    try:
        return signature(os.stat(path))
    except FileNotFoundError:
        return None


def _say(context: Context, one: _Sent) -> None:
    """Change what is said of a file; answers stay as they were, so that it says when it was made, too."""
    path, document = one.document.path + DESCRIPTION, one.document
    trees: dict[str, Tree] = {
        KEY: one.stored.as_tree(),
        **known_timestamps(document.created_at, document.updated_at),
    }
    if not context.changeset.exists(path):
        context.changeset.put(path, new_text(path, None, trees))
        return
    with unreadable(path):
        text = context.changeset.text(path)
        said = parse(path, text, None)
        changes = {key: tree for key, tree in trees.items() if key == KEY or key not in said}
        context.changeset.put(path, changed_text(path, text, None, changes))


# --- garbage --------------------------------------------------------------------------------------

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket, Listed

GRACE = timedelta(hours=24)
AT_ONCE = 500  # blobs that are read at a time
DELETED = 100  # objects that are looked at once more, and deleted by one request
HISTORY_S = 600.0  # that git may take to list what there is in all commits
_HASH = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_KEY = re.compile(r"[0-9a-f]{2}/([0-9a-f]{64})(\.[a-z0-9]{1,12})?")
NOTHING_NAMED = "the site names none of the objects that are there"


@dataclass(frozen=True, slots=True)
class Garbage:
    """How many objects there are, how many of them are named or young, and those that are neither."""

    objects: int
    named: int
    young: int
    unnamed: Sequence["Listed"]

    @property
    def bytes(self) -> int:
        """How many bytes could be freed."""
        return sum(one.size for one in self.unnamed)


def find_garbage(root: Path, bucket: "Bucket", grace: timedelta = GRACE) -> Garbage:
    """The objects that can be removed. What is not named like one of ours is left alone.

    Raises SetupError where git does not have all of the history, or the site names no object at all, and
    RemoteError where a remote can't be asked for the commits that it has.
    """
    listed = [one for one in bucket.listed() if _KEY.fullmatch(one.key)]  # before the names are looked at
    names = named(root)
    used = [one for one in listed if _hash(one) in names]
    if listed and not used:
        fix = "is media.store that of this site? delete the prefix with other tools if it is to go"
        raise SetupError("media gc", None, NOTHING_NAMED, fix)
    unused = [one for one in listed if _hash(one) not in names]
    old = [one for one in unused if _is_old(one.modified, grace)]
    return Garbage(len(listed), len(used), len(unused) - len(old), old)


def remove(bucket: "Bucket", garbage: Garbage, progress: Progress, grace: timedelta = GRACE) -> int:
    """Delete objects, but those that somebody has sent again since; returns how many were deleted."""
    deleted, keys = 0, [one.key for one in garbage.unnamed]
    for start in range(0, len(keys), DELETED):
        progress(start, len(keys))
        part = [key for key in keys[start : start + DELETED] if _is_still_old(bucket, key, grace)]
        bucket.delete(part)
        deleted += len(part)
    progress(len(keys), len(keys))
    return deleted


def named(root: Path) -> set[str]:
    """Every hash that a description has, on disk or in a commit. Raises SetupError, RemoteError, GitError."""
    found = {hash_ for path in walk(root, [UPLOADS]).files for hash_ in _named_on_disk(root, path)}
    if git_folder(root) is None:
        return found
    if is_shallow(root):
        fix = "run git fetch --unshallow"
        raise SetupError("media gc", None, "this clone lacks the older part of the history", fix)
    for remote in git_or_fail(root, "remote").split():
        fetch_all(root, remote)
    ids = _descriptions(root)
    for start in range(0, len(ids), AT_ONCE):
        for data in read_blobs(root, ids[start : start + AT_ONCE]):
            if data is None:
                raise _lacking()
            found.update(one.decode() for one in _HASH.findall(data))
    return found


def _named_on_disk(root: Path, path: str) -> Iterator[str]:
    if path.endswith(DESCRIPTION):
        yield from (one.decode() for one in _HASH.findall((root / path).read_bytes()))


def _descriptions(root: Path) -> list[str]:
    """The ids of all descriptions that git has ever kept, those in the index and in the reflog among them."""
    blobs = (*_objects(root), *_changed(root), *_staged(root))
    inside, ending = f"{UPLOADS}/".encode(), DESCRIPTION.encode()
    return sorted({id_.decode() for id_, path in blobs if path.endswith(ending) and inside in path})


def _objects(root: Path) -> Iterator[tuple[bytes, bytes]]:
    """All objects, each with one of its paths, which may be that of a copy elsewhere."""
    listed = _printed(root, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects")
    for line in listed.split(b"\n"):
        id_, _, path = line.partition(b" ")
        yield id_, path


def _changed(root: Path) -> Iterator[tuple[bytes, bytes]]:
    """What commits have put at each path; of merges, what is in none of their parents."""
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
    words = iter(_printed(root, "log", "--all", "--reflog", *changes).split(b"\0"))
    for word in words:
        if word.lstrip(b"\n").startswith(b":"):  # modes and ids, of which the last are what is there now
            yield word.split()[-2], next(words)


def _staged(root: Path) -> Iterator[tuple[bytes, bytes]]:
    for word in _printed(root, "ls-files", "--stage", "--full-name", "-z").split(b"\0"):
        about, _, path = word.partition(b"\t")
        if path:
            yield about.split()[1], path


def _printed(root: Path, *arguments: str) -> bytes:
    """What git prints of all that there is. Raises SetupError where some of it is not there."""
    try:
        printed = git_bytes(root, *arguments, seconds=HISTORY_S)
    except GitSlowError:
        raise
    except GitError as error:
        raise _lacking() from error
    if printed is None:
        raise _lacking()
    return printed


def _lacking() -> SetupError:
    fix = "clone it as a whole, without --filter, and see what git fsck says"
    return SetupError("media gc", None, "this clone lacks a part of its files", fix)


def _hash(listed: "Listed") -> str:
    return listed.key.partition("/")[2][:64]


def _is_old(modified: datetime, grace: timedelta) -> bool:
    return datetime.now(UTC) - modified >= grace


def _is_still_old(bucket: "Bucket", key: str, grace: timedelta) -> bool:
    modified = bucket.modified(key)
    return modified is not None and _is_old(modified, grace)
