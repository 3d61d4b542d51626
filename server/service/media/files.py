"""Media files in their current version or at a commit (docs/media.md)."""

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
from server.storage.images.variants import split_variant_path
from server.storage.links import open_ordinary
from server.storage.media import mime_type, stored_object


@dataclass(frozen=True, slots=True)
class MediaFile:
    """An open media file, which the caller must close.

    `digest` is "" if it is unknown. `modified` is a Unix time in seconds. `versions` contains the hashes that
    the URL parameter `v` can name, or is None if the file was not transformed.
    """

    file: IO[bytes]
    name: str
    mime: str
    digest: str = ""
    modified: float | None = None
    varies_by_accept: bool = False
    versions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class MediaFiles:
    """The media files of a site, in their current version or at a commit."""

    site: Site
    past: PastStates
    bucket: SiteBucket

    def is_served(self, commit: str) -> bool:
        """Return True if requests without the parameter `at` get the files of this commit."""
        served_state = self.past.pinned
        return not commit or (served_state is not None and served_state.commit == commit)

    def find(self, snapshot: Snapshot, commit: str, key: str) -> MediaFile | str:
        """Return a file, or its URL if clients must load it from the bucket.

        If `commit` is "", the current file is returned. Raises NotFoundError, or any error of the bucket.
        """
        stored = stored_object(snapshot.media, key)
        url = self.bucket.url(self.site.state.settings, stored) if stored else ""
        return url or self.open(snapshot, commit, key)

    def open(self, snapshot: Snapshot, commit: str, key: str) -> MediaFile:
        if stored := stored_object(snapshot.media, key):
            file = self.bucket.open(self.site.state.settings, stored)
            return MediaFile(file, posixpath.basename(key), mime_type(key), stored.sha256)
        past = self._past_file(snapshot, key, commit) if commit else None
        return past or self._current(snapshot, key)

    def blob_id(self, snapshot: Snapshot, commit: str, key: str) -> str:
        """Return the id of the git blob that `open` reads, or "" if it reads the current file."""
        blob = replaced_file(self.past, commit, snapshot.media[key].path) if key in snapshot.media else None
        return blob.id if blob else ""

    def _current(self, snapshot: Snapshot, key: str) -> MediaFile:
        media, format_parts = snapshot.media, split_variant_path(key)
        described_key = key if key in media or format_parts is None else format_parts[1]
        root = self.site.root
        file = root / media[key].path if key in media else self.site.image_cache.find_variant_file(key, media)
        if file is None:
            raise NotFoundError()
        file_object = _open(root, file)
        modified_at = os.fstat(file_object.fileno()).st_mtime
        modified = self.site.git.committed.last_change(media[described_key].path, modified_at)
        return MediaFile(file_object, file.name, mime_type(key), modified=modified)

    def _past_file(self, snapshot: Snapshot, key: str, commit: str) -> MediaFile | None:
        """Return a file as it was at a commit, or None if the file has not changed since that commit.

        Raises NotFoundError.
        """
        media, format_parts = snapshot.media, split_variant_path(key)
        if key in media:
            blob = replaced_file(self.past, commit, media[key].path)
            name = posixpath.basename(media[key].path)
            return MediaFile(open_blob(self.site.root, blob), name, mime_type(key), blob.id) if blob else None
        if format_parts is None or format_parts[1] not in media:
            raise NotFoundError()
        picture = media[format_parts[1]].path
        blob = replaced_file(self.past, commit, picture)
        if blob is None:
            return None
        file = self.past.picture_file(picture, blob, format_parts[0])
        if file is None:
            raise NotFoundError()
        file_object = _open(self.site.root, file)
        return MediaFile(file_object, file.name, mime_type(key))


def _open(root: Path, file: Path) -> IO[bytes]:
    try:
        return open_ordinary(root, file.relative_to(root).as_posix())
    except OSError as error:
        raise NotFoundError() from error
