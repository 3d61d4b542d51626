"""Moves of media files into the bucket and back, each batch in one write."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING

from server.documents.document import Document
from server.errors import ConflictError, MissingObjectError
from server.formats.edits import REMOVE
from server.formats.tree import Tree
from server.paths import incoming_folder
from server.service.read import Caller
from server.service.write import Writes
from server.site.site import Site
from server.storage.bucket.keeping import Keeper
from server.storage.bucket.stored import DESCRIPTION_KEY, StoredFile, StoredObject, object_of
from server.storage.document_text import change_text, new_text
from server.storage.files import Signature, signature
from server.storage.images.kinds import ImageSize
from server.storage.images.sizes import needs_formats
from server.storage.media import SIDECAR_SUFFIX
from server.storage.read import parse
from server.write.context import Context, unreadable
from server.write.write_timestamps import known_timestamps

if TYPE_CHECKING:
    from server.storage.bucket.bucket import Bucket

BATCH_FILES = 20  # Files that one write of the site moves.
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


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A file whose content is on this machine now, in another place."""

    document: Document
    source: Path


def pull(writes: Writes, caller: Caller, bucket: "Bucket", progress: Progress) -> Moved:
    """Put the content of all media into content/uploads/. Raises BucketError, and what a write raises."""
    site = writes.site
    waiting = [
        (one, object_)
        for one in media_of(site)
        if (object_ := object_of(one.get("provider_metadata"))) and not is_on_disk(site, one)
    ]
    count, size, left, commit = 0, 0, list[tuple[str, str]](), ""
    message = partial(message_of, "Move", "from")
    for start in range(0, len(waiting), BATCH_FILES):
        batch = list[_Fetched]()
        with ExitStack() as opened:
            for done, (document, object_) in enumerate(waiting[start : start + BATCH_FILES], start):
                progress(done, len(waiting))
                try:
                    source = opened.enter_context(fetched(site, bucket, object_))
                except MissingObjectError as error:
                    left.append((document.path, error.message))
                    continue
                batch.append(_Fetched(document, source))
                size += object_.size
            if batch:
                commit = writes.make(caller, _put, batch, message=message).commit
            count += len(batch)
    progress(len(waiting), len(waiting))
    return Moved(count, size, tuple(left), commit)


def _put(batch: Sequence[_Fetched], context: Context) -> int:
    """Put files beside their descriptions, which name no object any more. Returns how many."""
    count = 0
    for one in batch:
        path, sidecar = one.document.path, one.document.path + SIDECAR_SUFFIX
        if context.changeset.exists(path) or not context.changeset.exists(sidecar):
            continue  # Somebody was faster.
        with unreadable(sidecar):
            text = change_text(sidecar, context.changeset.text(sidecar), None, {DESCRIPTION_KEY: REMOVE})
        context.changeset.put(sidecar, text)
        context.changeset.put_file(path, one.source)
        count += 1
    return count


# --- pushing --------------------------------------------------------------------------------------

MAX_ATTEMPTS = 3  # Attempts to send a file that another program changes meanwhile.


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


def push(
    writes: Writes, caller: Caller, bucket: "Bucket", progress: Progress, *, keep: bool = False
) -> Moved:
    """Put the content of all media into the bucket, and take it out of content/uploads/, unless to `keep` it.

    Pictures in the bucket get the formats that they lack. Raises BucketError, and what a write raises.
    """
    site = writes.site
    keeper = Keeper(bucket, site.image_cache.folder)
    waiting = [one for one in media_of(site) if is_on_disk(site, one) or _lacks_formats(one)]
    count, size, left, commit = 0, 0, list[tuple[str, str]](), ""
    message = partial(message_of, "Copy" if keep else "Move", "to")
    for start in range(0, len(waiting), BATCH_FILES):
        sent = list[_Sent]()
        for done, document in enumerate(waiting[start : start + BATCH_FILES], start):
            progress(done, len(waiting))
            try:
                one = _send(site, bucket, keeper, document, keep=keep)
            except (OSError, ConflictError, MissingObjectError) as error:
                left.append((document.path, str(error)))
                continue
            if one.found or one.stored.formats:
                sent.append(one)
        if sent:
            commit = writes.make(caller, _describe, _Batch(sent, keep), message=message).commit
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
    for _ in range(MAX_ATTEMPTS):
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
    path, document = one.document.path + SIDECAR_SUFFIX, one.document
    trees: dict[str, Tree] = {
        DESCRIPTION_KEY: one.stored.as_tree(),
        **known_timestamps(document.created_at, document.updated_at),
    }
    if not context.changeset.exists(path):
        context.changeset.put(path, new_text(path, None, trees))
        return
    with unreadable(path):
        text = context.changeset.text(path)
        said = parse(path, text, None)
        changes = {key: tree for key, tree in trees.items() if key == DESCRIPTION_KEY or key not in said}
        context.changeset.put(path, change_text(path, text, None, changes))
