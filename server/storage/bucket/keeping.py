"""Uploader for media files and their resized variants."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from server.errors import BusyError
from server.storage.bucket.copies import LocalObjectCache
from server.storage.bucket.stored import StoredFile, StoredFormat, StoredObject, bucket_extension
from server.storage.images.cache import size_of_image
from server.storage.images.errors import UnresizableError
from server.storage.images.kinds import ImageSize
from server.storage.images.variants import (
    cached_placeholder,
    make_variants,
    read_record,
    should_have_variants,
    variant_file,
)
from server.storage.media import mime_type

# --- headers --------------------------------------------------------------------------------------

CACHE_CONTROL = "public, max-age=31536000, immutable"  # The object for a key never changes.
# Browsers are allowed to display files of these types, except SVG. All other files, such as HTML, are sent as
# attachments, because they could run scripts on the bucket's origin, where the server's security headers have
# no effect. Pages can still embed SVG attachments as images.
_INLINE_PREFIXES = ("image/", "audio/", "video/", "font/")
_INLINE_TYPES = ("text/plain", "application/pdf")
_SCRIPTABLE_TYPES = ("image/svg+xml",)


def headers_of(mime: str) -> Mapping[str, str]:
    charset = "; charset=utf-8" if mime.startswith("text/") else ""
    headers = {"Content-Type": mime + charset, "Cache-Control": CACHE_CONTROL}
    if can_be_displayed(mime):
        return headers
    return {**headers, "Content-Disposition": "attachment"}


def can_be_displayed(mime: str) -> bool:
    return mime in _INLINE_TYPES or (mime.startswith(_INLINE_PREFIXES) and mime not in _SCRIPTABLE_TYPES)


# --- uploading --------------------------------------------------------------------------------------


_KEY_DIGITS = 32  # `images.cache` uses this many digits of an image's hash as the key.


class Target(Protocol):
    """Place to upload objects to, such as a bucket."""

    def put(self, object_: StoredObject, source: Path, attributes: Mapping[str, str]) -> bool:
        """Upload a file. Return False if the object already exists. Raises BucketError if this fails."""


@dataclass(frozen=True, slots=True)
class MediaUploader:
    """Uploader for media files. It also creates and uploads the resized variants of images.

    The variants are created in the folder `formats`. `copies` is an optional local cache of at most
    `max_cache_bytes`, to which uploaded files are added.
    """

    target: Target
    formats: Path
    copies: LocalObjectCache | None = None
    max_cache_bytes: int = 0
    placeholders: bool = False

    def upload(self, source: Path, extension: str) -> StoredFile:
        """Upload a file and its variants.

        Raises BucketError if the bucket can't be used, or OSError if `source` can't be read.
        """
        ext = bucket_extension(extension)
        with source.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            content = StoredObject(sha256, ext, file.tell())
            file.seek(0)
            image_size = size_of_image(file, extension)
        self._put(content, source, extension)
        made_formats = self._formats(source, sha256, extension, image_size)
        formats = {name: self._put_format(one, path, extension) for name, (one, path) in made_formats.items()}
        if image_size is None:
            return StoredFile(content)
        placeholder = cached_placeholder(self.formats, sha256[:_KEY_DIGITS]) if self.placeholders else None
        return StoredFile(content, image_size.width, image_size.height, formats, placeholder)

    def _put_format(self, format_: StoredFormat, path: Path, extension: str) -> StoredFormat:
        self._put(format_.object, path, extension)
        return format_

    def _put(self, object_: StoredObject, source: Path, extension: str) -> None:
        self.target.put(object_, source, headers_of(mime_type(f"x{extension}")))
        if self.copies:
            self.copies.add(object_, source, self.max_cache_bytes)

    def _formats(
        self, source: Path, sha256: str, extension: str, image_size: ImageSize | None
    ) -> Mapping[str, tuple[StoredFormat, Path]]:
        if not should_have_variants(image_size, extension):
            return {}
        key = sha256[:_KEY_DIGITS]
        try:
            with source.open("rb") as file:
                make_variants(self.formats, key, file, extension)
            record = read_record(self.formats, key)
            formats = {}
            for name, entry in record.items():
                path = variant_file(self.formats, key, name, f"x{extension}")
                data = path.read_bytes()
                object_ = StoredObject(
                    hashlib.sha256(data).hexdigest(), bucket_extension(extension), len(data)
                )
                formats[name] = StoredFormat(object_, entry["width"], entry["height"]), path
            return formats
        except (UnresizableError, BusyError, OSError, ValueError):
            return {}
