"""Limits on the pixels of images, and the dimensions of the variants that are made at upload.

- MAX_MEASURED_PIXELS: a file that declares more is not treated as an image.
- MAX_DECODED_PIXELS: a larger image gets no variants at upload.
- The setting `media.transform.max_pixels`: a larger image is not transformed by URL.
"""

from collections.abc import Mapping

from server.storage.images.kinds import ImageSize

# The variants as in Strapi: name, maximum width and maximum height in pixels.
VARIANTS: Mapping[str, tuple[int, int]] = {
    "thumbnail": (245, 156),
    "small": (500, 500),
    "medium": (750, 750),
    "large": (1000, 1000),
}
SCALED_ENDINGS = (".png", ".jpg", ".jpeg", ".webp", ".gif", ".tif", ".tiff")
# JPEGs of any size can be decoded, because they are decoded at reduced dimensions.
_DRAFT_ENDINGS = (".jpg", ".jpeg")
MAX_MEASURED_PIXELS = 100_000_000  # Even a tiny file can declare a huge number.
MAX_DECODED_PIXELS = 64_000_000  # in all frames of a GIF together
MAX_RESULT_BYTES = 64_000_000  # size of a transformed image


def should_have_variants(image_size: ImageSize | None, ending: str) -> bool:
    """Return True if an image can be resized and is larger than the smallest variant."""
    if image_size is None or ending.lower() not in SCALED_ENDINGS:
        return False
    if image_size.width * image_size.height > MAX_DECODED_PIXELS and ending.lower() not in _DRAFT_ENDINGS:
        return False
    width, height = VARIANTS["thumbnail"]
    return image_size.width > width or image_size.height > height
