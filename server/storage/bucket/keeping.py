"""Puts a file into a bucket: its content, and the formats of a picture, before anything names them."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from server.errors import BusyError
from server.storage.bucket.copies import Copies
from server.storage.bucket.stored import StoredFile, StoredFormat, StoredObject, ending_for
from server.storage.images.cache import size_of_image
from server.storage.images.formats import UnscalableError, format_file, make_formats, read_record
from server.storage.images.kinds import ImageSize
from server.storage.images.sizes import needs_formats
from server.storage.media import mime_type

# --- headers --------------------------------------------------------------------------------------

CACHE_CONTROL = "public, max-age=31536000, immutable"  # A key never names another content.
# Types that a browser may show. Others, such as SVG and HTML, could run script on the origin of the bucket,
# where no header of ours forbids it. A page can still show a picture that is sent as an attachment.
_INLINE_PREFIXES = ("image/", "audio/", "video/", "font/")
_INLINE_TYPES = ("text/plain", "application/pdf")
_SCRIPTABLE_TYPES = ("image/svg+xml",)


def headers_of(mime: str) -> Mapping[str, str]:
    """The headers of an object of a media type."""
    charset = "; charset=utf-8" if mime.startswith("text/") else ""
    headers = {"Content-Type": mime + charset, "Cache-Control": CACHE_CONTROL}
    if is_shown(mime):
        return headers
    return {**headers, "Content-Disposition": "attachment"}


def is_shown(mime: str) -> bool:
    """Whether a browser may show a file of a media type that anybody has uploaded."""
    return mime in _INLINE_TYPES or (mime.startswith(_INLINE_PREFIXES) and mime not in _SCRIPTABLE_TYPES)


# --- keeping --------------------------------------------------------------------------------------


class Target(Protocol):
    """What objects are put into."""

    def put(self, object_: StoredObject, source: Path, attributes: Mapping[str, str]) -> bool:
        """Send an object; False where it was there. Raises BucketError."""


@dataclass(frozen=True, slots=True)
class Keeper:
    """Puts files into a bucket. Formats are made in `formats`, the folder of those of pictures on disk.

    Of what is sent, `copies` keep up to `most` bytes, since it will be asked for soon.
    """

    target: Target
    formats: Path
    copies: Copies | None = None
    most: int = 0

    def keep(self, source: Path, ending: str) -> StoredFile:
        """Put a file with some ending into the bucket; what its description has to say of it.

        Raises BucketError, and OSError where the file can't be read.
        """
        ext = ending_for(ending)
        with source.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            content = StoredObject(sha256, ext, file.tell())
            file.seek(0)
            image_size = size_of_image(file, ending)
        self._put(content, source, ending)
        made = self._formats(source, sha256, ending, image_size)
        formats = {name: self._put_format(one, path, ending) for name, (one, path) in made.items()}
        if image_size is None:
            return StoredFile(content)
        return StoredFile(content, image_size.width, image_size.height, formats)

    def _put_format(self, one: StoredFormat, path: Path, ending: str) -> StoredFormat:
        self._put(one.object, path, ending)
        return one

    def _put(self, object_: StoredObject, source: Path, ending: str) -> None:
        self.target.put(object_, source, headers_of(mime_type(f"x{ending}")))
        if self.copies:
            self.copies.add(object_, source, self.most)

    def _formats(
        self, source: Path, sha256: str, ending: str, image_size: ImageSize | None
    ) -> Mapping[str, tuple[StoredFormat, Path]]:
        """The formats of a picture and their files; none where they can't be made, or not now."""
        if not needs_formats(image_size, ending):
            return {}
        key = sha256[:32]  # as `images.cache` calls them
        try:
            with source.open("rb") as file:
                make_formats(self.formats, key, file, ending)
            record = read_record(self.formats, key)
            found = {}
            for name, entry in record.items():
                path = format_file(self.formats, key, name, f"x{ending}")
                data = path.read_bytes()
                object_ = StoredObject(hashlib.sha256(data).hexdigest(), ending_for(ending), len(data))
                found[name] = StoredFormat(object_, entry["width"], entry["height"]), path
            return found
        except (UnscalableError, BusyError, OSError, ValueError):
            return {}
