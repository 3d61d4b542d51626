"""Media files: where the bytes of each are, now and at a commit (docs/media.md).

Only what the index knows as a media file is found.
"""

import os
import posixpath
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from server.errors import NotFoundError
from server.history.commit_files import open_blob
from server.history.past import PastStates, replaced_file
from server.index.snapshot import Snapshot
from server.site.site import Site
from server.storage.bucket.site_bucket import SiteBucket
from server.storage.bucket.stored import StoredObject
from server.storage.images.formats import format_of
from server.storage.links import open_ordinary
from server.storage.media import mime_type, stored_object


@dataclass(frozen=True, slots=True)
class MediaFile:
    """An opened media file, which the caller has to close.

    `digest` identifies its bytes; "" if only reading the file would tell it.
    """

    file: IO[bytes]
    name: str
    mime: str
    digest: str = ""
    modified: float | None = None  # seconds since 1970


@dataclass(frozen=True, slots=True)
class MediaFiles:
    """The media files of a site, on disk, in a bucket and in its past."""

    site: Site
    past: PastStates
    bucket: SiteBucket

    def is_served(self, commit: str) -> bool:
        """Return whether requests without `at` are answered from a commit, "" for the current state."""
        held = self.past.held
        return not commit or (held is not None and held.commit == commit)

    def find(self, snapshot: Snapshot, commit: str, key: str) -> MediaFile | str:
        """Return the file under a key, or the URL where a bucket offers it.

        `commit` is that of a past state, "" for the current one. Raises NotFoundError, and what the bucket
        raises.
        """
        if stored := stored_object(snapshot.media, key):
            return self._stored(stored, key)
        past = self._past(snapshot, key, commit) if commit else None
        return past or self._current(snapshot, key)

    def _stored(self, stored: StoredObject, key: str) -> MediaFile | str:
        settings = self.site.state.settings
        if url := self.bucket.url(settings, stored):
            return url
        file = self.bucket.open(settings, stored)
        return MediaFile(file, posixpath.basename(key), mime_type(key), stored.sha256)

    def _current(self, snapshot: Snapshot, key: str) -> MediaFile:
        media, of_picture = snapshot.media, format_of(key)
        described = key if key in media or of_picture is None else of_picture[1]
        root = self.site.root
        file = root / media[key].path if key in media else self.site.image_cache.file_of(key, media)
        if file is None:
            raise NotFoundError()
        opened = _open(root, file)
        at = os.fstat(opened.fileno()).st_mtime
        modified = self.site.git.committed.modified(media[described].path, at)
        return MediaFile(opened, file.name, mime_type(key), modified=modified)

    def _past(self, snapshot: Snapshot, key: str, commit: str) -> MediaFile | None:
        """Return a file that differed at a commit; None if it has not changed since."""
        media, of_picture = snapshot.media, format_of(key)
        if key in media:
            blob = replaced_file(self.past, commit, media[key].path)
            name = posixpath.basename(media[key].path)
            return MediaFile(open_blob(self.site.root, blob), name, mime_type(key), blob.id) if blob else None
        if of_picture is None or of_picture[1] not in media:
            raise NotFoundError()
        picture = media[of_picture[1]].path
        blob = replaced_file(self.past, commit, picture)
        if blob is None:
            return None
        file = self.past.picture_file(picture, blob, of_picture[0])
        if file is None:
            raise NotFoundError()
        opened = _open(self.site.root, file)
        return MediaFile(opened, file.name, mime_type(key))


def _open(root: Path, file: Path) -> IO[bytes]:
    """Open a file of the site. Raises NotFoundError if it is gone or became a link."""
    try:
        return open_ordinary(root, file.relative_to(root).as_posix())
    except OSError as error:
        raise NotFoundError() from error
