"""Image dimensions, read from file headers without decoding the images."""

import warnings
from collections.abc import Callable
from typing import IO, cast

from PIL import Image
from PIL.IcoImagePlugin import IcoFile

from server.storage.images.kinds import MEASURED_ENDINGS, ImageSize
from server.storage.images.svg import svg_size

# Excludes formats for which Pillow starts other programs, and ICO, which Pillow decodes on opening.
PILLOW_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "AVIF", "BMP")
# A file that declares more pixels is not treated as an image. (Even a tiny file can declare a huge number.)
MAX_PIXELS = 100_000_000
Image.MAX_IMAGE_PIXELS = None  # MAX_PIXELS replaces Pillow's own limit.
# A damaged TIFF file would add a line to the log for each of its tags.
warnings.filterwarnings("ignore", category=UserWarning, module=r"PIL\.")
_ORIENTATION_TAG = 0x0112  # EXIF tag
# Limits on the bytes read to measure an image. For some formats, Pillow reads the whole file.
_MAX_HEAD_BYTES, _MAX_FILE_BYTES = 4 * 1024 * 1024, 64 * 1024 * 1024
_MAX_READS = 20_000  # Pillow calls `read` for each marker, chunk and tag. A photo needs a few hundred reads.
_WHOLE_FILE_FORMATS = {".webp": ("WEBP",), ".avif": ("AVIF",)}


def measure(file: IO[bytes], ending: str) -> ImageSize | None:
    """Return an image's width and height, or None if they can't be determined."""
    ending = ending.lower()
    try:
        if ending in _READERS:
            return _READERS[ending](file)
        if ending not in MEASURED_ENDINGS:
            return None
        most = _MAX_FILE_BYTES if ending in _WHOLE_FILE_FORMATS else _MAX_HEAD_BYTES
        head = cast(IO[bytes], _Head(file, most))
        image = Image.open(head, formats=_WHOLE_FILE_FORMATS.get(ending, PILLOW_FORMATS))
        width, height = image.size
        if width * height > MAX_PIXELS:
            return None
        return ImageSize(height, width) if orientation(image) >= 5 else ImageSize(width, height)
    except Exception:  # Pillow may raise any exception for a damaged file.
        return None


class _Head:
    """File wrapper that raises ValueError after `most` bytes or _MAX_READS reads, to protect against
    malicious headers.
    """

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._left, self._reads_left = file, most, _MAX_READS
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        count = self._left + 1 if size < 0 else size
        data = self._file.read(min(count, self._left + 1))
        self._left -= len(data)
        self._reads_left -= 1
        if self._left < 0 or self._reads_left < 0:
            raise ValueError("the header of an image is too long")
        return data


def orientation(image: Image.Image) -> int:
    """Return an image's EXIF orientation, or 1 if it is invalid or not stored before the pixels."""
    if image.format == "TIFF":  # Pillow rotates these images itself.
        return 1
    # For a PNG, `image.getexif` would decode the image to search for EXIF data after the pixels.
    found = Image.Image.getexif(image).get(_ORIENTATION_TAG, 1)
    return found if found in range(1, 9) else 1


def _drawing_size(file: IO[bytes]) -> ImageSize | None:
    return ImageSize(*size) if (size := svg_size(file)) else None


def _icon_size(file: IO[bytes]) -> ImageSize:
    return ImageSize(*IcoFile(file).entry[0].dim)  # The first image in an icon file is the largest.


_READERS: dict[str, Callable[[IO[bytes]], ImageSize | None]] = {".svg": _drawing_size, ".ico": _icon_size}
