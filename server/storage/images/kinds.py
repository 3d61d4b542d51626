"""What a file is by its first bytes or its ending: a picture, another media type, or text."""

import codecs
import math
from dataclasses import dataclass
from pathlib import Path

import filetype  # type: ignore[import-untyped]

# The endings of pictures that have a size in pixels, beside SVG.
MEASURED_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".avif", ".bmp", ".ico")
PICTURE_ENDINGS = (*MEASURED_ENDINGS, ".svg")


@dataclass(frozen=True, slots=True)
class ImageSize:
    """An image's width and height in pixels, after the rotation that its EXIF data asks for."""

    width: int
    height: int


def sniff(path: Path) -> tuple[str, str] | None:
    """The media type and the ending that a file's first bytes tell; None where they tell nothing."""
    found = filetype.guess(str(path))
    if found is None:
        return None
    ending = "png" if found.extension == "apng" else found.extension  # an animated PNG is a PNG
    return str(found.mime), f".{ending}"


def is_text(path: Path) -> bool:
    """Whether a file begins like text."""
    with path.open("rb") as file:
        head = file.read(4096)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def kilobytes(size: int) -> float:
    """Some bytes in thousands, to two digits, half of the last rounded up."""
    return math.floor(size / 10 + 0.5) / 100
