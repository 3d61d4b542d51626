"""The size of a picture in pixels, by the header of its file.

Nothing here decodes a picture, so that it costs the same for one of any size.
"""

from collections.abc import Callable
from typing import IO, cast

from PIL import Image
from PIL.IcoImagePlugin import IcoFile

from server.storage.images.kinds import MEASURED_ENDINGS, ImageSize
from server.storage.images.svg import svg_size

# Pillow starts other programs for some formats, which are left out, and decodes an ICO as it opens it.
PILLOW_FORMATS = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "AVIF", "BMP")
# A small file can claim any size. One with more pixels is taken for no image.
MAX_PIXELS = 100_000_000
Image.MAX_IMAGE_PIXELS = None  # Pillow would warn at half of its own limit; MAX_PIXELS is checked instead.
_ORIENTATION_TAG = 0x0112  # Of EXIF.
# How many bytes of a file are read before its size is known: of some formats, Pillow reads the whole file.
_MAX_HEAD_BYTES, _MAX_FILE_BYTES = 4 * 1024 * 1024, 64 * 1024 * 1024
_WHOLE_FILE_FORMATS = {".webp": ("WEBP",), ".avif": ("AVIF",)}


def measure(file: IO[bytes], ending: str) -> ImageSize | None:
    """The size of an image, from its header alone; None for a file that is none, or is too large."""
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
    except Exception:  # Pillow raises whatever a damaged file leads it to
        return None


class _Head:
    """A file of which so many bytes can be read, wherever they are; more raise ValueError.

    Some headers can be as long as the file, in parts that take long to put together.
    """

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file, self._left = file, most
        self.seek, self.tell = file.seek, file.tell

    def read(self, size: int = -1) -> bytes:
        """The next bytes, or all that is left."""
        wanted = self._left + 1 if size < 0 else size
        data = self._file.read(min(wanted, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("the header of an image is too long")
        return data


def orientation(image: Image.Image) -> int:
    """How an image has to be turned to be shown, as EXIF has it, where that stands before its pixels.

    Pillow's method for PNG decodes the image, to find what stands behind them.
    """
    return int(Image.Image.getexif(image).get(_ORIENTATION_TAG, 1))


def _drawing_size(file: IO[bytes]) -> ImageSize | None:
    return ImageSize(*found) if (found := svg_size(file)) else None


def _icon_size(file: IO[bytes]) -> ImageSize:
    return ImageSize(*IcoFile(file).entry[0].dim)  # the largest of the icons in it


_READERS: dict[str, Callable[[IO[bytes]], ImageSize | None]] = {".svg": _drawing_size, ".ico": _icon_size}
