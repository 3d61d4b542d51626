"""Detection of file types from the first bytes."""

import codecs
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import filetype  # type: ignore[import-untyped]

# File name extensions of bitmap images whose width and height are read. SVG drawings are measured separately.
MEASURED_EXTENSIONS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".avif", ".bmp", ".ico")
PICTURE_EXTENSIONS = (*MEASURED_EXTENSIONS, ".svg")

ANIMATED_FORMATS = frozenset({"webp"})  # formats in which an animation stays an animation
# Leading bytes of files, by format (server.config.transformation.MEDIA_TYPES).
_SIGNATURES: Mapping[str, re.Pattern[bytes]] = {
    "avif": re.compile(rb"....ftypavi[fs]", re.DOTALL),
    "webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
    "jpg": re.compile(rb"\xff\xd8\xff"),
    "png": re.compile(rb"\x89PNG\r\n\x1a\n"),
}
_TEXT_BYTES = 4096  # read to tell text from other content
SIGNATURE_BYTES = 12  # length of the longest signature


@dataclass(frozen=True, slots=True)
class ImageSize:
    """Width and height in pixels, after EXIF rotation."""

    width: int
    height: int


@dataclass(frozen=True, slots=True)
class TransformedImage:
    """Dimensions and format of a transformed image."""

    size: ImageSize
    format: str


def sniff(content: Path | bytes) -> tuple[str, str] | None:
    guess = filetype.guess(content if isinstance(content, bytes) else str(content))
    if guess is None:
        return None
    extension = "png" if guess.extension == "apng" else guess.extension  # Animated PNGs also use .png.
    return str(guess.mime), f".{extension}"


def has_signature(data: bytes, format_: str) -> bool:
    return bool(_SIGNATURES[format_].match(data))


def is_text(content: Path | bytes) -> bool:
    """Return True if the first bytes of a file are UTF-8 text without null bytes."""
    if isinstance(content, bytes):
        head = content[:_TEXT_BYTES]
    else:
        with content.open("rb") as file:
            head = file.read(_TEXT_BYTES)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def kilobytes(size: int) -> float:
    """Convert bytes to kilobytes (1000 bytes), rounded to two decimal places."""
    return math.floor(size / 10 + 0.5) / 100
