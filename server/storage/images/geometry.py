"""Geometry of transformations: which part of an image is shown, and at which size."""

from dataclasses import dataclass

from server.config.transformation import CONTAIN, COVER, INSIDE, Transformation
from server.storage.images.kinds import ImageSize

CENTRE = (0.5, 0.5)
Box = tuple[float, float, float, float]  # left, top, right, bottom, in the image's pixels


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Part `box` of an image, resized to `size`, in the middle of a result with the dimensions `canvas`."""

    box: Box
    size: ImageSize
    canvas: ImageSize


def arrange(image: ImageSize, wanted: Transformation) -> Arrangement:
    """Return the arrangement for an image. `image` contains its dimensions after EXIF rotation."""
    whole: Box = (0.0, 0.0, float(image.width), float(image.height))
    width, height = wanted.pixel_width, wanted.pixel_height
    if width is None or height is None:
        factor = width / image.width if width else height / image.height if height else 1.0
        size = _scaled(image, factor if wanted.enlarges else min(factor, 1.0))
        return Arrangement(whole, size, size)
    factors = width / image.width, height / image.height
    if wanted.fit == COVER:
        return _cover(image, width, height, wanted)
    factor = min(factors) if wanted.fit in (INSIDE, CONTAIN) else max(factors)
    size = _scaled(image, factor if wanted.enlarges else min(factor, 1.0))
    if wanted.fit != CONTAIN:
        return Arrangement(whole, size, size)
    # Rounding must not make the image larger than the canvas.
    size = ImageSize(min(size.width, width), min(size.height, height))
    return Arrangement(whole, size, ImageSize(width, height))


def _cover(image: ImageSize, width: int, height: int, wanted: Transformation) -> Arrangement:
    if not wanted.enlarges:  # A smaller result keeps the requested ratio.
        shrink = min(1.0, image.width / width, image.height / height)
        width, height = max(1, round(width * shrink)), max(1, round(height * shrink))
    factor = max(width / image.width, height / image.height)
    inner_width, inner_height = min(width / factor, image.width), min(height / factor, image.height)
    focus = wanted.focus or CENTRE
    left = _within(focus[0] * image.width - inner_width / 2, image.width - inner_width)
    top = _within(focus[1] * image.height - inner_height / 2, image.height - inner_height)
    size = ImageSize(width, height)
    return Arrangement((left, top, left + inner_width, top + inner_height), size, size)


def _within(start: float, most: float) -> float:
    return min(max(start, 0.0), most)


def _scaled(image: ImageSize, factor: float) -> ImageSize:
    return ImageSize(max(1, round(image.width * factor)), max(1, round(image.height * factor)))
