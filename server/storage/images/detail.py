"""Search for an image's most detailed part (`crop=entropy`)."""

from collections.abc import Sequence
from itertools import accumulate

from PIL import Image, ImageFilter

from server.storage.images.geometry import Layout
from server.storage.images.kinds import ImageSize

_SIDE_PIXELS = 128  # The search uses a copy of at most this width and height.
_BORDER_PIXELS = 1  # The filter can't find edges here.


def point_of_detail(
    image: Image.Image, full: ImageSize, part: tuple[int, int, int, int], layout: Layout
) -> tuple[float, float]:
    """Return the center of the region with the most edges, as fractions of the image's width and height.

    The region is as large as `layout.box` and lies inside `part`. Both refer to an image of the size `full`.
    """
    across, down = image.width / full.width, image.height / full.height
    left, top, right, bottom = part
    factor = min(1.0, _SIDE_PIXELS / max((right - left) * across, (bottom - top) * down))
    size = (max(1, round((right - left) * across * factor)), max(1, round((bottom - top) * down * factor)))
    box = (left * across, top * down, right * across, bottom * down)
    small = image.convert("L").resize(size, Image.Resampling.BOX, box=box)
    inner = (_BORDER_PIXELS, _BORDER_PIXELS, size[0] - _BORDER_PIXELS, size[1] - _BORDER_PIXELS)
    edges = Image.new("F", size)
    if inner[0] < inner[2] and inner[1] < inner[3]:
        edges.paste(small.filter(ImageFilter.FIND_EDGES).crop(inner).convert("F"), inner)
    columns = memoryview(edges.resize((size[0], 1), Image.Resampling.BOX).tobytes()).cast("f").tolist()
    rows = memoryview(edges.resize((1, size[1]), Image.Resampling.BOX).tobytes()).cast("f").tolist()
    shown = layout.box
    x = _middle_of_window(columns, (shown[2] - shown[0]) / (right - left))
    y = _middle_of_window(rows, (shown[3] - shown[1]) / (bottom - top))
    return (left + x * (right - left)) / full.width, (top + y * (bottom - top)) / full.height


def _middle_of_window(amounts: Sequence[float], share: float) -> float:
    """Return the center of the window in which the sum of the amounts is largest.

    The center and the window's length `share` are fractions of the whole length.
    """
    count = max(1, min(len(amounts), round(len(amounts) * share)))
    sums = [0.0, *accumulate(amounts)]
    windows = [sums[start + count] - sums[start] for start in range(len(amounts) - count + 1)]
    largest = max(windows)
    # Of windows that are equally good, such as all windows of a plain image, take the middle one.
    best = [start for start, window in enumerate(windows) if window >= largest - 1e-6 * max(largest, 1.0)]
    return (best[len(best) // 2] + count / 2) / len(amounts)
