"""Geometry of transformations: which part of an image is shown, and at which size."""

from dataclasses import dataclass, replace

from server.config.transformation import CONTAIN, COVER, INSIDE, SCALE, Transformation
from server.storage.images.kinds import ImageSize

Box = tuple[float, float, float, float]  # left, top, right, bottom, in the image's pixels


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Part `box` of an image, resized to `size`, in the middle of a result with the dimensions `canvas`."""

    box: Box
    size: ImageSize
    canvas: ImageSize


def arrange(image: ImageSize, wanted: Transformation) -> Arrangement:
    """Return the arrangement for an image. `image` contains its dimensions after EXIF rotation."""
    if wanted.rectangle is None:
        return _arrange(image, wanted)
    left, top, right, bottom = clip_rectangle(image, wanted.rectangle)
    part = ImageSize(right - left, bottom - top)
    if wanted.focus:  # is a point of the whole image
        x, y = _point(wanted)
        focus = ((x * image.width - left) / part.width, (y * image.height - top) / part.height)
        wanted = replace(wanted, focus=focus)
    found = _arrange(part, wanted)
    box = found.box
    return replace(found, box=(box[0] + left, box[1] + top, box[2] + left, box[3] + top))


def _point(wanted: Transformation) -> tuple[float, float]:
    x, y = wanted.focus or (None, None)
    return (0.5 if x is None else x, 0.5 if y is None else y)


def clip_rectangle(image: ImageSize, rectangle: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Return the left, top, right and bottom of the part of a rectangle inside an image, at least a pixel."""
    left, top = min(rectangle[0], image.width - 1), min(rectangle[1], image.height - 1)
    return left, top, min(left + rectangle[2], image.width), min(top + rectangle[3], image.height)


def _arrange(image: ImageSize, wanted: Transformation) -> Arrangement:
    whole: Box = (0.0, 0.0, float(image.width), float(image.height))
    width, height = _sides(image, wanted)
    if width is None or height is None:
        factor = width / image.width if width else height / image.height if height else 1.0
        size = _scaled(image, factor if wanted.enlarges else min(factor, 1.0))
        return Arrangement(whole, size, size)
    if wanted.fit == SCALE:
        size = _within_image(image, width, height, wanted)
        return Arrangement(whole, size, size)
    factors = width / image.width, height / image.height
    if wanted.fit == COVER:
        return _cover(image, _within_image(image, width, height, wanted), _point(wanted))
    factor = min(factors) if wanted.fit in (INSIDE, CONTAIN) else max(factors)
    size = _scaled(image, factor if wanted.enlarges else min(factor, 1.0))
    if wanted.fit != CONTAIN:
        return Arrangement(whole, size, size)
    # Rounding must not make the image larger than the canvas.
    size = ImageSize(min(size.width, width), min(size.height, height))
    return Arrangement(whole, size, ImageSize(width, height))


def _sides(image: ImageSize, wanted: Transformation) -> tuple[int | None, int | None]:
    """Return the requested width and height. None: the other side and the image's ratio determine it."""
    width, height = wanted.pixel_width, wanted.pixel_height
    if wanted.ratio:
        if width is None and height is None:  # as large as possible
            width = max(1, min(image.width, round(image.height * wanted.ratio)))
        if width is None and height is not None:
            width = max(1, round(height * wanted.ratio))
        elif height is None and width is not None:
            height = max(1, round(width / wanted.ratio))
    elif width is None and height is not None and (limits := wanted.pixel_width_range):
        width = _outside_range(height * image.width / image.height, limits)
    elif height is None and width is not None and (limits := wanted.pixel_height_range):
        height = _outside_range(width * image.height / image.width, limits)
    return width, height


def _outside_range(side: float, limits: tuple[int, int]) -> int | None:
    """Return the nearest length in a range, or None if the side is in the range already."""
    least, most = limits
    return None if least <= round(side) <= most else least if side < least else most


def _within_image(image: ImageSize, width: int, height: int, wanted: Transformation) -> ImageSize:
    if wanted.enlarges:
        return ImageSize(width, height)
    # A smaller result keeps the requested ratio.
    shrink = min(1.0, image.width / width, image.height / height)
    return ImageSize(max(1, round(width * shrink)), max(1, round(height * shrink)))


def _cover(image: ImageSize, size: ImageSize, focus: tuple[float, float]) -> Arrangement:
    factor = max(size.width / image.width, size.height / image.height)
    inner_width = min(size.width / factor, image.width)
    inner_height = min(size.height / factor, image.height)
    left = _within(focus[0] * image.width - inner_width / 2, image.width - inner_width)
    top = _within(focus[1] * image.height - inner_height / 2, image.height - inner_height)
    return Arrangement((left, top, left + inner_width, top + inner_height), size, size)


def _within(start: float, most: float) -> float:
    return min(max(start, 0.0), most)


def _scaled(image: ImageSize, factor: float) -> ImageSize:
    return ImageSize(max(1, round(image.width * factor)), max(1, round(image.height * factor)))
