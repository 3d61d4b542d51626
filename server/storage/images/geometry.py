"""Geometry of image transformations."""

from dataclasses import dataclass, replace

from server.config.transformation import CONTAIN, COVER, INSIDE, SCALE, Transformation
from server.storage.images.kinds import ImageSize

Box = tuple[float, float, float, float]  # left, top, right, bottom, in the image's pixels


@dataclass(frozen=True, slots=True)
class Layout:
    """Layout of a transformed image.

    The part `box` of the original is resized to `size` and centered on an area of the size `canvas`.
    """

    box: Box
    size: ImageSize
    canvas: ImageSize


def lay_out(image: ImageSize, transformation: Transformation) -> Layout:
    """Return the layout of a transformed image. `image` is the size of the original after EXIF rotation."""
    if transformation.rectangle is None:
        return _lay_out(image, transformation)
    left, top, right, bottom = clip_rectangle(image, transformation.rectangle)
    part = ImageSize(right - left, bottom - top)
    if transformation.focus:  # The focus is a point in the whole image.
        x, y = _point(transformation)
        focus = ((x * image.width - left) / part.width, (y * image.height - top) / part.height)
        transformation = replace(transformation, focus=focus)
    layout = _lay_out(part, transformation)
    box = layout.box
    return replace(layout, box=(box[0] + left, box[1] + top, box[2] + left, box[3] + top))


def _point(transformation: Transformation) -> tuple[float, float]:
    x, y = transformation.focus or (None, None)
    return (0.5 if x is None else x, 0.5 if y is None else y)


def clip_rectangle(image: ImageSize, rectangle: tuple[int, int, int, int]) -> tuple[int, int, int, int]:
    """Clip a rectangle (left, top, width, height) to the image, and return (left, top, right, bottom)."""
    left, top = min(rectangle[0], image.width - 1), min(rectangle[1], image.height - 1)
    return left, top, min(left + rectangle[2], image.width), min(top + rectangle[3], image.height)


def _lay_out(image: ImageSize, transformation: Transformation) -> Layout:
    whole: Box = (0.0, 0.0, float(image.width), float(image.height))
    width, height = _requested_sides(image, transformation)
    if width is None or height is None:
        factor = width / image.width if width else height / image.height if height else 1.0
        size = _scaled(image, factor if transformation.enlarges else min(factor, 1.0))
        return Layout(whole, size, size)
    if transformation.fit == SCALE:
        size = _within_image(image, width, height, transformation)
        return Layout(whole, size, size)
    factors = width / image.width, height / image.height
    if transformation.fit == COVER:
        return _cover(image, _within_image(image, width, height, transformation), _point(transformation))
    factor = min(factors) if transformation.fit in (INSIDE, CONTAIN) else max(factors)
    size = _scaled(image, factor if transformation.enlarges else min(factor, 1.0))
    if transformation.fit != CONTAIN:
        return Layout(whole, size, size)
    # Rounding must not make the image larger than the canvas.
    size = ImageSize(min(size.width, width), min(size.height, height))
    return Layout(whole, size, ImageSize(width, height))


def _requested_sides(image: ImageSize, transformation: Transformation) -> tuple[int | None, int | None]:
    """Return the requested width and height. A side is None if it is to be calculated from the image."""
    width, height = transformation.pixel_width, transformation.pixel_height
    if transformation.ratio:
        if width is None and height is None:  # as large as possible
            width = max(1, min(image.width, round(image.height * transformation.ratio)))
        if width is None and height is not None:
            width = max(1, round(height * transformation.ratio))
        elif height is None and width is not None:
            height = max(1, round(width / transformation.ratio))
    elif width is None and height is not None and (limits := transformation.pixel_width_range):
        width = _limit_if_outside(height * image.width / image.height, limits)
    elif height is None and width is not None and (limits := transformation.pixel_height_range):
        height = _limit_if_outside(width * image.height / image.width, limits)
    return width, height


def _limit_if_outside(side: float, limits: tuple[int, int]) -> int | None:
    lowest, highest = limits
    return None if lowest <= round(side) <= highest else lowest if side < lowest else highest


def _within_image(image: ImageSize, width: int, height: int, transformation: Transformation) -> ImageSize:
    if transformation.enlarges:
        return ImageSize(width, height)
    # A smaller result keeps the requested ratio.
    shrink = min(1.0, image.width / width, image.height / height)
    return ImageSize(max(1, round(width * shrink)), max(1, round(height * shrink)))


def _cover(image: ImageSize, size: ImageSize, focus: tuple[float, float]) -> Layout:
    factor = max(size.width / image.width, size.height / image.height)
    inner_width = min(size.width / factor, image.width)
    inner_height = min(size.height / factor, image.height)
    left = _clamp(focus[0] * image.width - inner_width / 2, image.width - inner_width)
    top = _clamp(focus[1] * image.height - inner_height / 2, image.height - inner_height)
    return Layout((left, top, left + inner_width, top + inner_height), size, size)


def _clamp(start: float, maximum: float) -> float:
    return min(max(start, 0.0), maximum)


def _scaled(image: ImageSize, factor: float) -> ImageSize:
    return ImageSize(max(1, round(image.width * factor)), max(1, round(image.height * factor)))
