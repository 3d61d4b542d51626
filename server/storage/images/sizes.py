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
SCALED = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff")
_DRAFTED = (".jpg", ".jpeg")  # which are decoded smaller than they are
MAX_DECODED = 64_000_000  # pixels; a picture with more to decode is not scaled


def needs_formats(image_size: ImageSize | None, ending: str) -> bool:
    """Whether an image is larger than the smallest format, and of a type and size that is scaled."""
    if image_size is None or ending.lower() not in SCALED:
        return False
    if image_size.width * image_size.height > MAX_DECODED and ending.lower() not in _DRAFTED:
        return False
    width, height = FORMATS["thumbnail"]
    return image_size.width > width or image_size.height > height
