"""What moving media comes to, and what both directions share."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from server.documents.document import Document
from server.paths import incoming_folder
from server.site.site import Site
from server.storage.bucket.stored import StoredObject

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
