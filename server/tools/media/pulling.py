"""Moves media from the bucket into content/uploads/, a few files at a time, as one write of the site each.

Objects stay in the bucket, since commits name them.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from server.documents.document import Document
from server.errors import MissingObjectError
from server.formats.edits import REMOVE
from server.service.authorship import by_command
from server.site.site import Site
from server.storage.bucket.stored import KEY, object_of
from server.storage.document_text import changed_text
from server.storage.media import DESCRIPTION
from server.tools.media.moved import BATCH, Moved, Progress, fetched, is_on_disk, media_of, message_of
from server.write.context import Context, unreadable

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
                commit = site.write(by_command(site, message), _put, batch)[2]
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
