"""Image dimensions from file headers."""

import time
import warnings
from collections.abc import Callable
from typing import IO, cast

from PIL import Image
from PIL.IcoImagePlugin import IcoFile

from server.storage.images.containers import avif_size, is_iso_bmff, is_webp, webp_header
from server.storage.images.kinds import MEASURED_EXTENSIONS, ImageSize
from server.storage.images.limits import MAX_MEASURED_PIXELS
from server.storage.images.svg import svg_size

# Excludes formats for which Pillow starts other programs, and ICO, which Pillow decodes on opening.
PILLOW_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "AVIF", "BMP")
Image.MAX_IMAGE_PIXELS = None  # MAX_MEASURED_PIXELS replaces Pillow's own limit.
# A damaged TIFF file would add a line to the log for each of its tags.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
_ORIENTATION_TAG = 0x0112  # EXIF tag
# The formats whose headers Pillow reads in Python, without a decoder.
_HEADER_FORMATS = tuple(name for name in PILLOW_FORMATS if name not in ("WEBP", "AVIF"))
# Limits on reading a header, for malicious files. A photo takes some dozens of reads and 1 ms. Pillow calls
# `read` for each marker, chunk and tag, and may decompress 1 MB for each chunk.
MAX_READS = 1000
_MAX_HEAD_BYTES = 4 * 1024 * 1024
_MAX_CPU_S = 0.5
_CHUNK_HEAD_BYTES = 8  # length and type of a PNG's chunk


def measure(file: IO[bytes], extension: str) -> ImageSize | None:
    """Return an image's dimensions, or None if they can't be determined or are too large."""
    extension = extension.lower()
    try:
        head = cast(IO[bytes], _Head(file))
        if extension in _READERS:
            return _READERS[extension](head)
        if extension not in MEASURED_EXTENSIONS:
            return None
        size = _size(head, extension)
    except Exception:  # Pillow may raise any exception for a damaged file.
        return None
    return size if 0 < size.width * size.height <= MAX_MEASURED_PIXELS else None


def _size(file: IO[bytes], extension: str) -> ImageSize:
    start = file.read(12)
    file.seek(0)
    # Some files have the extension of another format.
    if extension == ".webp" or is_webp(start):
        image = Image.Image()
        (width, height), metadata = webp_header(file)
        image.info.update(metadata)
    elif extension == ".avif" or is_iso_bmff(start):
        return ImageSize(*avif_size(file))
    else:
        image = Image.open(file, formats=_HEADER_FORMATS)
        width, height = image.size
    return ImageSize(height, width) if orientation(image) >= 5 else ImageSize(width, height)


class _Head:
    """File that raises ValueError if reading an image's header takes too many bytes, reads or CPU time."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._left, self._reads_left = file, _MAX_HEAD_BYTES, MAX_READS
        self._until_s = time.thread_time() + _MAX_CPU_S
        self._has_profile = False
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        count = self._left + 1 if size < 0 else size
        data = self._file.read(min(count, self._left + 1))
        self._left -= len(data)
        self._reads_left -= 1
        if self._left < 0 or self._reads_left < 0 or time.thread_time() > self._until_s:
            raise ValueError("the header of an image is too long")
        if size == _CHUNK_HEAD_BYTES and data.endswith(b"iCCP"):
            if self._has_profile:  # Each profile of a PNG may expand to 1 MB.
                raise ValueError("the header of an image contains several color profiles")
            self._has_profile = True
        return data


def orientation(image: Image.Image) -> int:
    """Return the EXIF orientation (1 to 8), or 1 if it is missing, invalid or stored after the pixels."""
    if image.format == "TIFF":  # Pillow rotates these images itself.
        return 1
    if image.format == "AVIF":  # Its boxes contain the orientation. Pillow would also search the XMP data.
        image.info.pop("xmp", None)
    # For a PNG, `image.getexif` would decode the image to search for EXIF data after the pixels.
    found = Image.Image.getexif(image).get(_ORIENTATION_TAG, 1)
    return found if found in range(1, 9) else 1


def _drawing_size(file: IO[bytes]) -> ImageSize | None:
    return ImageSize(*size) if (size := svg_size(file)) else None


def _icon_size(file: IO[bytes]) -> ImageSize:
    return ImageSize(*IcoFile(file).entry[0].dim)  # The first image in an icon file is the largest.


_READERS: dict[str, Callable[[IO[bytes]], ImageSize | None]] = {".svg": _drawing_size, ".ico": _icon_size}
