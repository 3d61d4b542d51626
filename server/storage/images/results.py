"""Format and dimensions of a transformation's result, known before the image is decoded."""

from collections.abc import Mapping

from server.config.media import TransformSettings
from server.config.transformation import AUTO, Transformation
from server.storage.images.geometry import arrange
from server.storage.images.kinds import ANIMATED_FORMATS, ImageSize

# The format of a result if the request names none, by extension. Files with other extensions can't be
# transformed.
OWN_FORMATS: Mapping[str, str] = {
    ".jpg": "jpg", ".jpeg": "jpg", ".png": "png", ".webp": "webp", ".avif": "avif",
    ".gif": "webp", ".tif": "webp", ".tiff": "webp", ".bmp": "webp",
}  # fmt: skip

_ANIMATED_ENDINGS = frozenset({".gif", ".webp", ".png", ".avif"})  # of originals that can be animations


class UnfitSizeError(ValueError):
    """The image or the result has too many pixels. `str()` says which, as the end of a sentence."""


def result_size(image: ImageSize, wanted: Transformation, settings: TransformSettings) -> ImageSize:
    """Return the dimensions of a transformed image. Raises UnfitSizeError."""
    if image.width * image.height > settings.max_pixels:
        raise UnfitSizeError(f"it has more than {settings.max_pixels:,} pixels (media.transform.max_pixels)")
    if wanted.rectangle and (wanted.rectangle[0] >= image.width or wanted.rectangle[1] >= image.height):
        left, top, *_ = wanted.rectangle
        sides = f"{image.width} × {image.height}"
        raise UnfitSizeError(f"rect begins at {left},{top}, but the image has {sides} pixels")
    made = arrange(image, wanted).canvas
    most = max(settings.max_edge, image.width, image.height)
    if max(made.width, made.height) > most:
        sides = f"{made.width} × {made.height}"
        limit = "media.transform.max_edge" if most == settings.max_edge else "the longer side of the original"
        raise UnfitSizeError(
            f"the result would have {sides} pixels, but each side can have at most {most:,} ({limit})"
        )
    return made


def animation_limit(ending: str, format_: str, settings: TransformSettings) -> int:
    """Return `max_pixels` if the result may be an animation, otherwise 0.

    An animation with more pixels in all frames together becomes a still image, so cache keys contain this.
    """
    made = format_ or OWN_FORMATS[ending]
    can_move = ending in _ANIMATED_ENDINGS and (made == AUTO or made in ANIMATED_FORMATS)
    return settings.max_pixels if can_move else 0
