"""Pictures: their size, and the smaller formats that clients ask for, made once and kept by content.

What is kept lies in .quire/formats/, under the hash of the picture; it can be deleted at any time.
"""

import codecs
import hashlib
import json
import os
import posixpath
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import filetype  # type: ignore[import-untyped]
from PIL import Image, ImageOps

# Each format's name and the box that it fits in, as existing clients know them.
FORMATS: Mapping[str, tuple[int, int]] = {
    "thumbnail": (245, 156),
    "small": (500, 500),
    "medium": (750, 750),
    "large": (1000, 1000),
}
MEASURED = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff", ".avif", ".bmp", ".ico")
SCALED = (".png", ".jpg", ".jpeg", ".webp")
# A small file can claim any size: one with more pixels is no picture, one with more to decode is not scaled.
MAX_PIXELS, MAX_DECODED = 100_000_000, 64_000_000
Image.MAX_IMAGE_PIXELS = None  # Pillow would warn at half of its limit; `_open` has ours
_READ = ("PNG", "JPEG", "WEBP", "GIF", "TIFF", "AVIF", "BMP", "ICO")  # no others: some start programs
_DRAFT = (2000, 2000)  # JPEG is decoded no larger than this needs: twice the largest format
_RECORD = "formats.json"
_SMOOTH = {"1": "L", "P": "RGBA", "PA": "RGBA"}  # modes whose pixels can't be mixed, and what can
_one_at_a_time = threading.Lock()  # what is being scaled is whole in memory


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture's width and height in pixels, as it is shown."""

    width: int
    height: int


def measure(path: Path) -> Picture | None:
    """The size of a picture, from its head alone; None for what is no picture, or too large a one."""
    if path.suffix.lower() not in MEASURED:
        return None
    try:
        with _open(path) as image:
            turned = image.getexif().get(0x0112, 1) >= 5
            width, height = image.size
            return Picture(height, width) if turned else Picture(width, height)
    except Exception:  # Pillow raises whatever a damaged file leads it to
        return None


def _open(path: Path) -> Image.Image:
    """A picture, its head read and nothing else. Raises whatever Pillow does for what is none."""
    image = Image.open(path, formats=_READ)
    if image.width * image.height > MAX_PIXELS:
        image.close()
        raise ValueError(f"{path.name} has more than {MAX_PIXELS} pixels")
    return image


def sniff(path: Path) -> tuple[str, str] | None:
    """(media type, ending) that a file's first bytes tell, or None where they tell nothing."""
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


def digest(path: Path) -> str:
    """The hash of a file's content."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:32]


def needs_formats(picture: Picture | None, ending: str) -> bool:
    """Whether a picture is larger than the smallest format."""
    if picture is None or ending.lower() not in SCALED:
        return False
    width, height = FORMATS["thumbnail"]
    return picture.width > width or picture.height > height


def kept_formats(folder: Path, key: str, inside: str) -> dict[str, Any] | None:
    """The formats of the picture at upload path `inside` whose content has the hash `key`, if made."""
    try:
        record = json.loads((folder / key / _RECORD).read_bytes())
        return {name: _described(name, entry, inside) for name, entry in record.items() if name in FORMATS}
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def make_formats(folder: Path, key: str, path: Path) -> None:
    """Make the smaller formats of a picture. Raises OSError for what can't be read as one."""
    target = folder / key
    target.mkdir(parents=True, exist_ok=True)
    record: dict[str, dict[str, int]] = {}
    ending = path.suffix.lower()
    with _one_at_a_time:
        size, image = _decode(path)
        for name, (width, height) in FORMATS.items():
            if size[0] <= width and size[1] <= height:
                continue
            scaled = image.resize(_fit(size, (width, height)), Image.Resampling.LANCZOS)
            file = target / f"{name}{ending}"
            _save(scaled, file)
            record[name] = {"width": scaled.width, "height": scaled.height, "bytes": file.stat().st_size}
    temporary = target / f"{_RECORD}.{os.getpid()}"
    temporary.write_text(json.dumps(record))
    temporary.replace(target / _RECORD)


def _decode(path: Path) -> tuple[tuple[int, int], Image.Image]:
    """A picture's size as it is shown, and the picture, which may be smaller. Raises OSError."""
    picture = measure(path)
    if picture is None:
        raise OSError(f"{path.name} is no picture")
    try:
        with _open(path) as image:
            image.draft(None, _DRAFT)
            if image.width * image.height > MAX_DECODED:
                raise OSError(f"{path.name} has more than {MAX_DECODED} pixels to decode")
            ImageOps.exif_transpose(image, in_place=True)
            image.load()
    except OSError:
        raise
    except Exception as error:  # Pillow raises whatever a damaged file leads it to
        raise OSError(str(error)) from error
    smooth = _SMOOTH.get(image.mode)
    return (picture.width, picture.height), image.convert(smooth) if smooth else image


def _fit(size: tuple[int, int], box: tuple[int, int]) -> tuple[int, int]:
    """The largest size of the same shape in a box."""
    scale = min(box[0] / size[0], box[1] / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _save(image: Image.Image, file: Path) -> None:
    temporary = file.with_name(f".{os.getpid()}-{file.name}")
    if file.suffix in (".jpg", ".jpeg"):
        image.convert("RGB").save(temporary, "JPEG", quality=80, optimize=True, progressive=True)
    elif file.suffix == ".webp":
        image.save(temporary, "WEBP", quality=80)
    else:
        image.save(temporary, "PNG", optimize=True)
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
        "mime": "image/jpeg" if ending.lower() in (".jpg", ".jpeg") else f"image/{ending[1:].lower()}",
        "path": None,
        "width": entry["width"],
        "height": entry["height"],
        "size": round(size / 1000, 2),
        "sizeInBytes": size,
        "url": "/uploads/" + quote(posixpath.join(folder, f"{name}_{file}")),
    }


def format_of(inside: str) -> tuple[str, str] | None:
    """`a/small_b.png` → (`small`, `a/b.png`): the format and the picture that a path may mean."""
    folder, file = posixpath.split(inside)
    name, _, rest = file.partition("_")
    return (name, posixpath.join(folder, rest)) if name in FORMATS and rest else None


def format_file(folder: Path, key: str, name: str, inside: str) -> Path:
    """Where a format of a picture is kept."""
    return folder / key / f"{name}{posixpath.splitext(inside)[1].lower()}"
