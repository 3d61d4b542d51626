"""Pictures of commits: their sizes and formats, by the bytes that they had.

They depend only on the bytes, not on which worker reads them, nor when. Formats that are missing are made in
the background, as those of the files on disk are.
"""

from functools import partial
from pathlib import Path
from posixpath import splitext
from typing import Any

from server.bounded import Cache
from server.errors import NotFoundError, StorageError
from server.history.commit_files import open_blob
from server.storage.files import Signature
from server.storage.git.tree import Blob
from server.storage.images.cache import NO_PICTURE, ImageCache, Picture, read_picture
from server.storage.images.formats import UnscalableError, cached_formats
from server.storage.images.kinds import PICTURE_ENDINGS
from server.storage.media import media_key, upload_path

_MAX_BYTES, _ENTRY_BYTES = 4 * 1024 * 1024, 400  # Of the cache of pictures, and of an entry, about.


class Pictures:
    """The pictures of the commits of one site, by path and blob. Safe to use from many threads."""

    def __init__(self, root: Path, image_cache: ImageCache) -> None:
        self._root, self._image_cache = root, image_cache
        # Saves 4 ms for each picture of 1 MB that is in a commit and not on disk.
        self._known: Cache[tuple[str, str], Picture] = Cache(_MAX_BYTES, lambda *_: _ENTRY_BYTES)

    def of(self, path: str, blob: Blob, on_disk: Signature | None = None) -> Picture:
        """Return the picture that a blob holds at a path.

        `on_disk` is the signature of a file that holds the same, which is faster to look at.
        Raises StorageError for a full disk.
        """
        ending = splitext(path)[1]
        if ending.lower() not in PICTURE_ENDINGS:
            return NO_PICTURE
        found = self._known.get((blob.id, ending))
        if found is None and on_disk is not None:
            found = self._image_cache.picture(upload_path(path) or "", on_disk)
        if found is None:
            found = self._read(blob, ending)
        self._known.put((blob.id, ending), found)
        return found

    def formats(self, path: str, picture: Picture) -> dict[str, Any] | None:
        """Return the formats of a picture as the API shows them, or None if they are not made."""
        if not picture.key:
            return None
        return cached_formats(self._image_cache.folder, picture.key, media_key(path) or "")

    def file(self, path: str, blob: Blob, name: str) -> Path | None:
        """Return the file of a format of a picture, or None if it is not made."""
        key = self.of(path, blob).key
        return self._image_cache.checked_file(key, name, path) if key else None

    def is_wanting(self, path: str, blob: Blob) -> bool:
        """Return whether the formats of a picture are missing and can be made."""
        picture = self.of(path, blob)
        missing = bool(picture.key) and self.formats(path, picture) is None
        return missing and self._image_cache.may_make(picture.key)

    def make(self, path: str, blob: Blob) -> bool:
        """Make the formats of a picture; False if that can't be done now. A damaged picture gets none."""
        picture, ending = self.of(path, blob), splitext(path)[1]
        try:
            return self._image_cache.make_from(picture.key, ending, partial(open_blob, self._root, blob))
        except UnscalableError:
            self._known.put((blob.id, ending), Picture(picture.size, ""))
            return True
        except (NotFoundError, StorageError):
            return False

    def mark(self) -> int:
        """See `ImageCache.mark`."""
        return self._image_cache.mark()

    def _read(self, blob: Blob, ending: str) -> Picture:
        try:
            with open_blob(self._root, blob) as file:
                return read_picture(file, ending)
        except (NotFoundError, ValueError):
            return NO_PICTURE
