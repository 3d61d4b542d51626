"""Placeholder and main color, displayed until an image is loaded."""

import blurhash
from PIL import Image

from server.storage.images.transform import flatten, to_interpolable

_MAX_SIDE_PIXELS = 32  # Images are reduced to this size first, because a placeholder shows no more detail.
_COMPONENTS = 4  # along the longer side; the number along the shorter side follows from the ratio
_PALETTE_COLORS = 8  # colors of the palette from which the main color is chosen


def make_placeholder(image: Image.Image) -> dict[str, str]:
    """Return a BlurHash (`placeholder`) and main color (`color`, such as `#5b7f95`)."""
    small = _shrink_and_flatten(image)
    small.thumbnail((_MAX_SIDE_PIXELS, _MAX_SIDE_PIXELS))
    across, down = _components(*small.size)
    data = small.tobytes()
    row = 3 * small.width
    rows = [[data[at : at + 3] for at in range(start, start + row, 3)] for start in range(0, len(data), row)]
    return {"placeholder": blurhash.encode(rows, across, down), "color": _main_color(small)}


def _shrink_and_flatten(image: Image.Image) -> Image.Image:
    small = to_interpolable(image)
    small = small.reduce(max(1, min(small.size) // (4 * _MAX_SIDE_PIXELS)))
    return flatten(small.convert("RGBA") if "A" in small.getbands() else small)


def _components(width: int, height: int) -> tuple[int, int]:
    shorter = max(1, round(_COMPONENTS * min(width, height) / max(width, height)))
    return (_COMPONENTS, shorter) if width >= height else (shorter, _COMPONENTS)


def _main_color(image: Image.Image) -> str:
    reduced = image.quantize(_PALETTE_COLORS)
    counts = reduced.histogram()
    start = 3 * counts.index(max(counts))
    palette = reduced.getpalette() or []
    return "#" + bytes(palette[start : start + 3]).hex()
