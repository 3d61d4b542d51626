"""Images: their size, and the smaller formats that clients ask for, made once for each content.

Formats are kept in .quire/formats/ under the hash of the image, and can be deleted at any time.
"""

import codecs
import hashlib
import json
import math
import os
import posixpath
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import filetype  # type: ignore[import-untyped]
from PIL import Image, ImageOps, ImageSequence

from server.storage.svg import svg_size

# The name of each format and the box that it fits in, in pixels: those of Strapi.
FORMATS: Mapping[str, tuple[int, int]] = {
    "thumbnail": (245, 156),
    "small": (500, 500),
    "medium": (750, 750),
    "large": (1000, 1000),
}
MEASURED = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".avif", ".bmp", ".ico")
SCALED = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff")
# A small file can claim any size. One with more pixels is taken for no image; one with more to
# decode is not scaled.
MAX_PIXELS, MAX_DECODED = 100_000_000, 64_000_000
Image.MAX_IMAGE_PIXELS = (
    None  # Pillow would warn at half of its own limit; `_open` checks MAX_PIXELS instead.
)
_READ = (
    "PNG",
    "JPEG",
    "WEBP",
    "GIF",
    "TIFF",
    "AVIF",
    "BMP",
    "ICO",
)  # Pillow starts other programs for some formats, which are left out.
_DRAFT = (2000, 2000)  # A JPEG is decoded at twice the size of the largest format, not in full.
_RECORD = "formats.json"
_SMOOTH = {
    "1": "L",
    "P": "RGBA",
    "PA": "RGBA",
}  # Modes whose pixels can't be interpolated, and those to convert them to.
_SUBTYPES: Mapping[str, str] = {
    ".jpg": "jpeg",
    ".tif": "tiff",
}  # of media types, where the ending is not that
_one_at_a_time = threading.Lock()  # An image that is being scaled is in memory as a whole.


@dataclass(frozen=True, slots=True)
class ImageSize:
    """An image's width and height in pixels, after the rotation that its EXIF data asks for."""

    width: int
    height: int


def measure(path: Path) -> ImageSize | None:
    """The size of an image, from its header alone; None for a file that is none, or is too large."""
    ending = path.suffix.lower()
    try:
        if ending == ".svg":
            return ImageSize(*found) if (found := svg_size(path)) else None
        if ending not in MEASURED:
            return None
        with _open(path) as image:
            turned = image.getexif().get(0x0112, 1) >= 5
            width, height = image.size
            return ImageSize(height, width) if turned else ImageSize(width, height)
    except Exception:  # Pillow raises whatever a damaged file leads it to
        return None


def _open(path: Path) -> Image.Image:
    """An image of which only the header is read. Raises ValueError, and whatever Pillow raises."""
    image = Image.open(path, formats=_READ)
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise ValueError(f"{path.name} has more than {MAX_PIXELS} pixels")
    return image


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


def digest(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def needs_formats(image_size: ImageSize | None, ending: str) -> bool:
    """Whether an image is larger than the smallest format, and of a type that is scaled."""
    if image_size is None or ending.lower() not in SCALED:
        return False
    width, height = FORMATS["thumbnail"]
    return image_size.width > width or image_size.height > height


def kept_formats(folder: Path, key: str, inside: str) -> dict[str, Any] | None:
    """The formats of the image at the upload path `inside`, whose content has the hash `key`, if made."""
    try:
        record = json.loads((folder / key / _RECORD).read_bytes())
        return {name: _described(name, entry, inside) for name, entry in record.items() if name in FORMATS}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def make_formats(folder: Path, key: str, path: Path) -> None:
    """Make the formats of an image. Raises OSError for a file that is none."""
    target = folder / key
    target.mkdir(parents=True, exist_ok=True)
    record: dict[str, dict[str, int]] = {}
    ending = path.suffix.lower()
    with _one_at_a_time:
        size, image = _decode(path)
        for name, (width, height) in FORMATS.items():
            if size[0] <= width and size[1] <= height:
                continue
            scaled = _fit(size, (width, height))
            file = target / f"{name}{ending}"
            with _damaged():
                if ending == ".gif":
                    _save_frames(path, scaled, file)
                else:
                    _save(image.resize(scaled, Image.Resampling.LANCZOS), file)
            record[name] = {"width": scaled[0], "height": scaled[1], "bytes": file.stat().st_size}
    temporary = target / f"{_RECORD}.{os.getpid()}"
    temporary.write_text(json.dumps(record))
    temporary.replace(target / _RECORD)


def _decode(path: Path) -> tuple[tuple[int, int], Image.Image]:
    """An image's size as it is shown, and the image itself, maybe decoded smaller. Raises OSError."""
    image_size = measure(path)
    if image_size is None:
        raise OSError(f"{path.name} is no image")
    with _damaged(), _open(path) as image:
        image.draft(None, _DRAFT)
        frames = getattr(image, "n_frames", 1) if image.format == "GIF" else 1
        if image.width * image.height * frames > MAX_DECODED:
            raise OSError(f"{path.name} has more than {MAX_DECODED} pixels to decode")
        ImageOps.exif_transpose(image, in_place=True)
        image.load()
    smooth = _SMOOTH.get(image.mode)
    return (image_size.width, image_size.height), image.convert(smooth) if smooth else image


@contextmanager
def _damaged() -> Iterator[None]:
    """Turn whatever a damaged file leads Pillow to into an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(str(error)) from error


def _fit(size: tuple[int, int], box: tuple[int, int]) -> tuple[int, int]:
    """The largest size with the same proportions that fits in a box."""
    scale = min(box[0] / size[0], box[1] / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _save(image: Image.Image, file: Path) -> None:
    temporary = file.with_name(f".{os.getpid()}-{file.name}")
    if file.suffix in (".jpg", ".jpeg"):
        image.convert("RGB").save(temporary, "JPEG", quality=80, optimize=True, progressive=True)
    elif file.suffix == ".webp":
        image.save(temporary, "WEBP", quality=80)
    elif file.suffix in (".tif", ".tiff"):
        image.save(temporary, "TIFF", compression="tiff_lzw")
    else:
        image.save(temporary, "PNG", optimize=True)
    temporary.replace(file)


def _save_frames(path: Path, size: tuple[int, int], file: Path) -> None:
    """Save the frames of a GIF, which may be one, in another size; only those of that size are kept."""
    temporary = file.with_name(f".{os.getpid()}-{file.name}")
    frames, durations = [], []
    with _open(path) as image:
        again = {"loop": image.info["loop"]} if "loop" in image.info else {}
        for frame in ImageSequence.Iterator(image):
            frames.append(frame.convert("RGBA").resize(size, Image.Resampling.LANCZOS))
            durations.append(frame.info.get("duration", 0))
    first, *others = frames
    # Each frame is whole, so that what was shown before it is removed.
    first.save(temporary, "GIF", save_all=True, append_images=others, duration=durations, disposal=2, **again)
    temporary.replace(file)


def _described(name: str, entry: Mapping[str, int], inside: str) -> dict[str, Any]:
    """One format as the API shows it."""
    folder, file = posixpath.split(inside)
    stem, ending = posixpath.splitext(file)
    size = entry["bytes"]
    return {
        "name": f"{name}_{file}",
        "hash": f"{name}_{stem}",
        "ext": ending,
        "mime": f"image/{_SUBTYPES.get(ending.lower(), ending[1:].lower())}",
        "path": None,
        "width": entry["width"],
        "height": entry["height"],
        "size": kilobytes(size),
        "sizeInBytes": size,
        "url": "/uploads/" + quote(posixpath.join(folder, f"{name}_{file}")),
    }


def format_of(inside: str) -> tuple[str, str] | None:
    """`a/small_b.png` → (`small`, `a/b.png`): the format and the image that a path may mean."""
    folder, file = posixpath.split(inside)
    name, _, rest = file.partition("_")
    return (name, posixpath.join(folder, rest)) if name in FORMATS and rest else None


def format_file(folder: Path, key: str, name: str, inside: str) -> Path:
    """The file in which a format of an image is kept."""
    return folder / key / f"{name}{posixpath.splitext(inside)[1].lower()}"
