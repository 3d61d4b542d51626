"""Format and dimensions of a transformed image, computed without decoding the original."""

from collections.abc import Mapping

from server.config.media import TransformSettings
from server.config.transformation import AUTO, Transformation
from server.storage.images.errors import SizeLimitError
from server.storage.images.geometry import lay_out
from server.storage.images.kinds import ANIMATED_FORMATS, ImageSize

# The format of a result if the request names none, by extension. Files with other extensions can't be
# transformed.
OWN_FORMATS: Mapping[str, str] = {
    ".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp", ".avif": "avif",
    ".gif": "webp", ".tif": "webp", ".tiff": "webp", ".bmp": "webp",
}  # fmt: skip

_ANIMATED_EXTENSIONS = frozenset({".gif", ".webp", ".png", ".avif"})  # of originals that can be animations


def result_size(image: ImageSize, transformation: Transformation, settings: TransformSettings) -> ImageSize:
    """Return the dimensions of a transformed image.

    Raises SizeLimitError if the original or the result is too large, or if the rectangle is outside the
    image.
    """
    if image.width * image.height > settings.max_pixels:
        raise SizeLimitError(f"it has more than {settings.max_pixels:,} pixels (media.transform.max_pixels)")
    if transformation.rectangle and (
        transformation.rectangle[0] >= image.width or transformation.rectangle[1] >= image.height
    ):
        left, top, *_ = transformation.rectangle
        sides = f"{image.width} × {image.height}"
        raise SizeLimitError(f"rect begins at {left},{top}, but the image has {sides} pixels")
    result = lay_out(image, transformation).canvas
    max_edge = max(settings.max_edge, image.width, image.height)
    if max(result.width, result.height) > max_edge:
        sides = f"{result.width} × {result.height}"
        is_setting = max_edge == settings.max_edge
        limit = "media.transform.max_edge" if is_setting else "the longer side of the original"
        raise SizeLimitError(
            f"the result would have {sides} pixels, but each side can have at most {max_edge:,} ({limit})"
        )
    return result


def animation_limit(extension: str, format_: str, settings: TransformSettings) -> int:
    """Return the limit on the pixels of all frames together, or 0 if the result can't be animated.

    If `format_` is "", the result has the default format for the original's `extension`.
    """
    result = format_ or OWN_FORMATS[extension]
    can_move = extension in _ANIMATED_EXTENSIONS and (result == AUTO or result in ANIMATED_FORMATS)
    return settings.max_pixels if can_move else 0
