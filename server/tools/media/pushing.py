"""Moves media from content/uploads/ into the bucket, a few files at a time, as one write of the site each.

What was moved stays moved, so that who was interrupted begins again where that was. A file is taken out of
content/uploads/ only after all of it was read back from the bucket, and if it is still what was sent.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import TYPE_CHECKING

from server.documents.document import Document
from server.errors import ConflictError, MissingObjectError
from server.formats.tree import Plain, Tree
from server.service.authorship import by_command
from server.site.site import Site
from server.storage.bucket.keeping import Keeper
from server.storage.bucket.stored import KEY, StoredFile, object_of
from server.storage.document_text import changed_text, new_text
from server.storage.files import Signature, signature
from server.storage.images.formats import needs_formats
from server.storage.images.kinds import ImageSize
from server.storage.media import DESCRIPTION
from server.storage.read import parse
from server.tools.media.moved import BATCH, Moved, Progress, fetched, is_on_disk, media_of, message_of
from server.write.context import Context, unreadable

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
            commit = site.write(by_command(site, message), _describe, _Batch(sent, keep))[2]
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
        "createdAt": Plain(document.created_at),
        "updatedAt": Plain(document.updated_at),
    }
    if not context.changeset.exists(path):
        context.changeset.put(path, new_text(path, None, trees))
        return
    with unreadable(path):
        text = context.changeset.text(path)
        said = parse(path, text, None)
        changes = {key: tree for key, tree in trees.items() if key == KEY or key not in said}
        context.changeset.put(path, changed_text(path, text, None, changes))
