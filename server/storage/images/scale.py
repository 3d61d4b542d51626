"""Program that resizes one image and then exits, which frees its memory."""

import json
import os
import resource
import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import IO, Any

from PIL import Image, ImageOps, ImageSequence

from server.storage.images.limits import MAX_MEASURED_PIXELS
from server.storage.images.measure import PILLOW_FORMATS, measure, orientation
from server.storage.images.placeholder import make_placeholder
from server.storage.images.variants import MAX_CPU_S, PLACEHOLDER_KEY, UNRESIZABLE_STATUS, VARIANTS

MAX_MEMORY_BYTES = 1024 * 1024 * 1024  # limit on the address space of the process
NICENESS = 5  # The process has a lower priority than the threads that handle requests.
_MIN_DRAFT_SIZE = (2000, 2000)  # JPEGs are decoded at about twice the dimensions of the largest variant.
# Images are first reduced with a box filter to twice the target dimensions, then resampled.
_REDUCING_GAP = 2.0
# Pillow writes parts of an image's metadata into a new file by itself, such as comments. Only these are kept.
_KEPT_METADATA = ("icc_profile", "transparency")
# Image modes that can't be interpolated, and the modes to which they are converted.
_INTERPOLATED_MODES = {"1": "L", "P": "RGBA", "PA": "RGBA"}


def scale(file: IO[bytes], folder: Path, extension: str, max_pixels: int) -> dict[str, dict[str, Any]]:
    """Write the variants of an image to `folder`. Return their dimensions and sizes in bytes, by name.

    Under PLACEHOLDER_KEY, the result also contains the placeholder and main color. Raises OSError, or any
    exception from Pillow.
    """
    size, image = _decode(file, extension, max_pixels)
    made: dict[str, dict[str, Any]] = {PLACEHOLDER_KEY: make_placeholder(image)}
    for name, (width, height) in VARIANTS.items():
        if size[0] <= width and size[1] <= height:
            continue
        scaled = _fit(size, (width, height))
        path = folder / f"{name}{extension}"
        if extension == ".gif":
            _save_frames(file, scaled, path)
        else:
            _save(image.resize(scaled, Image.Resampling.LANCZOS), path)
        made[name] = {"width": scaled[0], "height": scaled[1], "bytes": path.stat().st_size}
    return made


def _decode(file: IO[bytes], extension: str, max_pixels: int) -> tuple[tuple[int, int], Image.Image]:
    image_size = measure(file, extension)
    if image_size is None:
        raise OSError(f"the image has more than {MAX_MEASURED_PIXELS:,} pixels")
    image = _open(file)
    image.draft(None, _MIN_DRAFT_SIZE)
    frames = getattr(image, "n_frames", 1) if image.format == "GIF" else 1
    if image.width * image.height * frames > max_pixels:
        raise OSError(f"more than {max_pixels:,} pixels would have to be decoded")
    if orientation(image) != 1:
        ImageOps.exif_transpose(image, in_place=True)
    image.load()
    smooth = _INTERPOLATED_MODES.get(image.mode)
    size = image_size.width, image_size.height
    return size, _reduce(image.convert(smooth) if smooth else image, _fit(size, VARIANTS["large"]))


def _reduce(image: Image.Image, largest: tuple[int, int]) -> Image.Image:
    # Averaging pixels is faster than resampling the whole image.
    factor = image.width // (2 * largest[0])
    return image.reduce(factor) if factor > 1 else image


def _open(file: IO[bytes]) -> Image.Image:
    file.seek(0)
    return Image.open(file, formats=PILLOW_FORMATS)


def _fit(size: tuple[int, int], box: tuple[int, int]) -> tuple[int, int]:
    factor = min(box[0] / size[0], box[1] / size[1])
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _save(image: Image.Image, path: Path) -> None:
    image.info = {name: image.info[name] for name in _KEPT_METADATA if name in image.info}
    if path.suffix in (".jpg", ".jpeg"):
        encoded = BytesIO()  # For a file, Pillow's JPEG encoder would ignore that the disk is full.
        image.convert("RGB").save(encoded, "JPEG", quality=80, optimize=True, progressive=True)
        path.write_bytes(encoded.getbuffer())
    elif path.suffix == ".webp":
        image.save(path, "WEBP", quality=80)
    elif path.suffix in (".tif", ".tiff"):
        image.save(path, "TIFF", compression="tiff_lzw")
    else:
        image.save(path, "PNG", optimize=True)


def _save_frames(file: IO[bytes], size: tuple[int, int], path: Path) -> None:
    frames, durations = [], []
    image = _open(file)
    loop = {"loop": image.info["loop"]} if "loop" in image.info else {}
    for frame in ImageSequence.Iterator(image):
        scaled = frame.convert("RGBA").resize(size, Image.Resampling.LANCZOS, reducing_gap=_REDUCING_GAP)
        scaled.info = {}
        frames.append(scaled)
        durations.append(frame.info.get("duration", 0))
    first, *rest = frames
    # Each frame is complete, so it must replace the previous one (disposal 2).
    first.save(path, "GIF", save_all=True, append_images=rest, duration=durations, disposal=2, **loop)


def _limit_process() -> None:
    # The soft CPU limit is lower than the hard limit, so the process is killed by SIGXCPU, not SIGKILL.
    for resource_id, limits in (
        (resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES)),
        (resource.RLIMIT_CPU, (MAX_CPU_S, MAX_CPU_S + 1)),
    ):
        with suppress(OSError, ValueError):
            resource.setrlimit(resource_id, limits)
    os.nice(NICENESS)


def main() -> None:
    """Resize the image on standard input, and print the result as JSON."""
    _limit_process()
    folder, extension, max_pixels = sys.argv[1:]
    try:
        made = scale(sys.stdin.buffer, Path(folder), extension, int(max_pixels))
    except Exception as error:  # Pillow may raise any exception for a damaged file.
        if isinstance(error, OSError) and error.errno is not None:
            raise  # A system error. Pillow's own errors have no errno.
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        sys.exit(UNRESIZABLE_STATUS)
    print(json.dumps(made))


if __name__ == "__main__":
    main()
