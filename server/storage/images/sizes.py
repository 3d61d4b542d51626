"""The sizes in which pictures are offered, and which pictures are scaled to them."""

from collections.abc import Mapping

from server.storage.images.kinds import ImageSize

# The name of each format and the box that it fits in, in pixels: those of Strapi.
FORMATS: Mapping[str, tuple[int, int]] = {
    "thumbnail": (245, 156),
    "small": (500, 500),
    "medium": (750, 750),
    "large": (1000, 1000),
}
SCALED_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff")
_DRAFT_ENDINGS = (".jpg", ".jpeg")  # JPEGs are decoded at a reduced size.
MAX_DECODED_PIXELS = 64_000_000  # A picture with more pixels to decode is not scaled.


def needs_formats(image_size: ImageSize | None, ending: str) -> bool:
    """Whether an image is larger than the smallest format, and of a type and size that is scaled."""
    if image_size is None or ending.lower() not in SCALED_ENDINGS:
        return False
    if image_size.width * image_size.height > MAX_DECODED_PIXELS and ending.lower() not in _DRAFT_ENDINGS:
        return False
    width, height = FORMATS["thumbnail"]
    return image_size.width > width or image_size.height > height
