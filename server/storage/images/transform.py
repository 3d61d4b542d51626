"""Transformation of one image."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from itertools import product
from typing import IO, Any, cast

from PIL import Image, ImageChops, ImageCms, ImageMath, ImageOps
from PIL.PngImagePlugin import PngImageFile

from server.config.transformation import Transformation
from server.storage.images.detail import point_of_detail
from server.storage.images.errors import UntransformableError
from server.storage.images.geometry import Layout, clip_rectangle, lay_out
from server.storage.images.kinds import ANIMATED_FORMATS, ImageSize, TransformedImage
from server.storage.images.measure import PILLOW_FORMATS, orientation

# Pillow's names of the formats whose frames are an animation. Those of other formats are pages or previews.
_ANIMATIONS = frozenset({"GIF", "WEBP", "PNG", "AVIF"})
MAX_FRAMES = 300
_PILLOW_NAMES = {"avif": "AVIF", "webp": "WEBP", "jpg": "JPEG", "png": "PNG"}
# Chosen so that photographs in all three formats look about as good as a JPEG of quality 80 (docs/images.md).
DEFAULT_QUALITIES = {"avif": 55, "webp": 80, "jpg": 80}
_OPTIONS: dict[str, dict[str, Any]] = {
    "avif": {"speed": 8},
    "webp": {"method": 4},
    "jpg": {"optimize": True, "progressive": True},
    "png": {"compress_level": 6},
}
# An image is first reduced with a box filter to this multiple of its new dimensions, then resampled.
_REDUCING_GAP = 3.0
_SRGB = ImageCms.createProfile("sRGB")
_ROUNDING_STEPS = 1  # of 256, by which a conversion from sRGB to sRGB can differ
# All mixtures of 9 levels of red, green and blue, and 256 greys: a sample of all colors.
_LEVELS = (*range(0, 256, 32), 255)
_SOME_COLORS = Image.new("RGB", (len(_LEVELS) ** 3 + 256, 1))
_SOME_COLORS.putdata([*product(_LEVELS, repeat=3), *((level,) * 3 for level in range(256))])
_WHITE, _TRANSPARENT = (255, 255, 255), (0, 0, 0, 0)
_JPEG_MODES = ("RGB", "L")
_FIRST_SWAPPING_ORIENTATION = 5  # From this EXIF orientation on, width and height are swapped.
_BYTES_PER_16_BIT_STEP = 256
_OPAQUE = 255
# Pillow's modes for reading big-endian and little-endian pixels with 16 bits per channel. PNG files are
# big-endian, so the second mode reads only the lower byte of each channel.
_WIDE_RGB, _LOWER_BYTES_OF_WIDE_RGB = "RGB;16B", "RGB;16L"
# By EXIF orientation. Pillow itself transposes only single images.
_TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}


def transform(
    source: IO[bytes],
    target: IO[bytes],
    transformation: Transformation,
    format_: str,
    max_pixels: int,
    alternative_formats: Sequence[str] = (),
) -> TransformedImage:
    """Transform `source`, and write the result to `target` in `format_`.

    If one of the `alternative_formats` gives a smaller file, this format is used instead. `max_pixels` is the
    limit on the pixels of all frames together. Raises UntransformableError, or any exception from Pillow.
    """
    image = Image.open(source, formats=PILLOW_FORMATS)
    if image.width * image.height > max_pixels:
        raise UntransformableError(f"has more than {max_pixels:,} pixels (media.transform.max_pixels)")
    full = _size_of(image)
    layout = lay_out(full, transformation)
    frames = getattr(image, "n_frames", 1)
    fits = frames <= MAX_FRAMES and frames * image.width * image.height <= max_pixels
    if frames > 1 and image.format in _ANIMATIONS and format_ in ANIMATED_FORMATS and fits:
        layout = _move_to_detail(image, full, transformation, layout)
        _save_animation(image, target, full, layout, transformation, format_)
    else:
        decoded = _decode(image, source, full, layout)
        layout = _move_to_detail(decoded, full, transformation, layout)
        rendered = _render(decoded, full, layout, format_)
        _save(rendered, target, transformation, format_)
        for alternative in alternative_formats:
            if _replace_if_smaller(rendered, target, transformation, alternative):
                format_ = alternative
    return TransformedImage(layout.canvas, format_)


class _LargerError(Exception):
    """Raised if the new file would be larger than the one that it should replace."""


class _LimitedFile(BytesIO):
    def __init__(self, max_bytes: int) -> None:
        super().__init__()
        self._max_bytes = max_bytes

    def write(self, data: Any) -> int:
        written = super().write(data)
        if self.tell() > self._max_bytes:
            raise _LargerError()
        return written


def _replace_if_smaller(
    image: Image.Image, target: IO[bytes], transformation: Transformation, format_: str
) -> bool:
    """Replace `target` with the image in `format_` if that file is smaller. Otherwise, return False."""
    if format_ == "jpg" and image.mode not in _JPEG_MODES:
        return False  # A JPEG can't be transparent.
    smaller = _LimitedFile(target.tell() - 1)
    try:
        _save(image, cast(IO[bytes], smaller), transformation, format_)
    except (_LargerError, UntransformableError):  # Encoding stops at the limit, so it takes little time.
        return False
    target.seek(0)
    target.write(smaller.getbuffer())
    target.truncate()
    return True


def _size_of(image: Image.Image) -> ImageSize:
    swapped = orientation(image) >= _FIRST_SWAPPING_ORIENTATION
    return ImageSize(image.height, image.width) if swapped else ImageSize(image.width, image.height)


def _decode(image: Image.Image, source: IO[bytes], full: ImageSize, layout: Layout) -> Image.Image:
    # A JPEG can be decoded at a half, a quarter or an eighth of its size, which is much faster.
    left, top, right, bottom = layout.box
    factor = max(layout.size.width / (right - left), layout.size.height / (bottom - top))
    image.draft(None, (max(1, round(image.width * factor)), max(1, round(image.height * factor))))
    mask = _mask_of_wide_color(image, source)
    if mask:
        image.putalpha(mask)
    if orientation(image) != 1:
        ImageOps.exif_transpose(image, in_place=True)
    image.load()
    return image


def _mask_of_wide_color(image: Image.Image, source: IO[bytes]) -> Image.Image | None:
    """Return an alpha mask if the image is a PNG with a 16-bit transparent color, and otherwise None.

    Pillow keeps only 8 bits of this color, so similar colors would become transparent too.
    """
    color = image.info.get("transparency")
    if not isinstance(image, PngImageFile) or not isinstance(color, tuple):
        return None
    if not image.tile or image.tile[0].args != _WIDE_RGB:
        return None
    image.load()
    source.seek(0)
    lower = PngImageFile(source)
    lower.tile = [lower.tile[0]._replace(args=_LOWER_BYTES_OF_WIDE_RGB)]
    mask = Image.new("L", image.size)
    for part, values in (
        (image, [value >> 8 for value in color]),
        (lower, [value & 0xFF for value in color]),
    ):
        for band, value in zip(part.split(), values, strict=True):
            mask = ImageChops.lighter(mask, _differs(band, value))
    return mask


def _differs(band: Image.Image, value: int) -> Image.Image:
    return band.point([0 if level == value else _OPAQUE for level in range(256)])


def _move_to_detail(
    image: Image.Image, full: ImageSize, transformation: Transformation, layout: Layout
) -> Layout:
    if not transformation.keeps_detail:
        return layout
    part = (0, 0, full.width, full.height)
    if transformation.rectangle:
        part = clip_rectangle(full, transformation.rectangle)
    return lay_out(full, replace(transformation, focus=point_of_detail(image, full, part, layout)))


def _save_animation(
    image: Image.Image,
    target: IO[bytes],
    full: ImageSize,
    layout: Layout,
    transformation: Transformation,
    format_: str,
) -> None:
    frames, durations, turn = [], [], _TRANSPOSITIONS.get(orientation(image))
    loop = image.info.get("loop", 1)  # A GIF without this value plays once.
    for number in range(getattr(image, "n_frames", 1)):
        image.seek(number)
        frame = image.convert("RGBA")
        frames.append(_render(frame.transpose(turn) if turn else frame, full, layout, format_))
        durations.append(image.info.get("duration", 0))
    options = {"append_images": frames[1:], "duration": durations, "loop": loop}
    _save(frames[0], target, transformation, format_, save_all=True, **options)


def _render(image: Image.Image, full: ImageSize, layout: Layout, format_: str) -> Image.Image:
    profile = image.info.get("icc_profile")
    image = to_interpolable(image)
    across, down = image.width / full.width, image.height / full.height
    left, top, right, bottom = layout.box
    box = (left * across, top * down, right * across, bottom * down)
    size = (layout.size.width, layout.size.height)
    if size != image.size or box != (0, 0, *image.size):
        image = image.resize(size, Image.Resampling.LANCZOS, box=box, reducing_gap=_REDUCING_GAP)
    image = _put_on_canvas(_in_srgb(image, profile), layout, format_)
    if format_ == "jpg" and image.mode not in _JPEG_MODES:
        image = flatten(image)
    image.info = {}  # Pillow would write some of the metadata, such as a color profile, into the result.
    return image


def to_interpolable(image: Image.Image) -> Image.Image:
    """Convert an image to a mode that has 8 bits per channel and no palette."""
    if image.mode in ("RGB", "RGBA", "L", "LA", "CMYK") and "transparency" not in image.info:
        return image
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        # Pillow would cut off values above 255 instead of scaling them.
        wide = image.convert("I") if image.mode != "F" else image
        is_wide = image.mode != "F" and wide.getextrema()[1] > 255  # type: ignore[operator]
        grey = (wide.point(lambda value: value / _BYTES_PER_16_BIT_STEP) if is_wide else wide).convert("L")
        color = image.info.get("transparency")
        if isinstance(color, int):
            is_shown = ImageMath.lambda_eval(lambda of: (of["wide"] != color) * _OPAQUE, wide=wide)
            grey.putalpha(is_shown.convert("L"))
        return grey
    if image.mode == "1" and "transparency" not in image.info:
        return image.convert("L")
    transparent = "transparency" in image.info or image.mode in ("PA", "La", "RGBa")
    return image.convert("RGBA" if transparent else "RGB")


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    alpha = image.getchannel("A") if image.mode in ("RGBA", "LA") else None
    colors = image.convert(image.mode[:-1]) if alpha else image
    if profile:
        with suppress(ImageCms.PyCMSError, OSError, ValueError):  # A damaged profile is ignored.
            if conversion := conversion_to_srgb(profile, colors.mode):
                colors = ImageCms.applyTransform(colors, conversion) or colors
    if colors.mode == "CMYK":
        colors = colors.convert("RGB")
    if alpha:
        if colors.mode == "L":
            colors = colors.convert("RGB")
        colors.putalpha(alpha)
    return colors


# Photographs of a site usually have the same few profiles. Saves 2 ms for each image.
@lru_cache(maxsize=4)
def conversion_to_srgb(profile: bytes, mode: str) -> ImageCms.ImageCmsTransform | None:
    """Return the conversion from a color profile to sRGB, or None if it would not change any color.

    `mode` is the mode of the image in Pillow. Raises PyCMSError if the profile is damaged or is for another
    mode.
    """
    described = ImageCms.ImageCmsProfile(BytesIO(profile))
    conversion = ImageCms.buildTransform(described, _SRGB, mode, "RGB")
    if mode != "RGB":
        return conversion
    converted = ImageCms.applyTransform(_SOME_COLORS, conversion)
    difference = ImageChops.difference(_SOME_COLORS, converted or _SOME_COLORS)
    largest = max(channel[1] for channel in difference.getextrema())  # type: ignore[index]
    return conversion if largest > _ROUNDING_STEPS else None


def _put_on_canvas(image: Image.Image, layout: Layout, format_: str) -> Image.Image:
    canvas = (layout.canvas.width, layout.canvas.height)
    if canvas == image.size:
        return image
    plain = format_ == "jpg"
    placed = Image.new("RGB" if plain else "RGBA", canvas, _WHITE if plain else _TRANSPARENT)
    image = flatten(image) if plain else image.convert("RGBA")
    placed.paste(image, ((canvas[0] - image.width) // 2, (canvas[1] - image.height) // 2))
    return placed


def flatten(image: Image.Image) -> Image.Image:
    if image.mode != "RGBA":
        return image.convert("RGB")
    flat = Image.new("RGB", image.size, _WHITE)
    flat.paste(image, mask=image.getchannel("A"))
    return flat


def _save(
    image: Image.Image, target: IO[bytes], transformation: Transformation, format_: str, **extra: Any
) -> None:
    options = {**_OPTIONS[format_], **extra}
    if format_ in DEFAULT_QUALITIES:
        options["quality"] = transformation.quality or DEFAULT_QUALITIES[format_]
    # Pillow's JPEG encoder writes to a file itself, and ignores that the disk is full.
    encoded = target if isinstance(target, BytesIO) else BytesIO()
    try:
        image.save(encoded, _PILLOW_NAMES[format_], **options)
        if encoded is not target:
            target.write(encoded.getbuffer())
    except (OSError, ValueError, RuntimeError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        sides = f"{image.width} × {image.height}"
        raise UntransformableError(f"can't be encoded as {format_} with {sides} pixels") from error
