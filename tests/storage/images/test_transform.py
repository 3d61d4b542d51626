"""Tests of transformed pictures: modes, colors, transparency, EXIF rotation, animations and metadata."""

import io
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest
from PIL import Image, ImageCms, ImageDraw, ImageFilter

from server.config.transformation import MEDIA_TYPES, Transformation
from server.storage.images.errors import UntransformableError
from server.storage.images.transform import conversion_to_srgb, transform

MAX_PIXELS = 1_000_000
RED, GREEN = (255, 0, 0), (0, 128, 0)


def saved(image: Image.Image, kind: str, **options: Any) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def transformed(
    data: bytes, wanted: Transformation, format_: str = "png", most: int = MAX_PIXELS
) -> Image.Image:
    out = io.BytesIO()
    size = transform(io.BytesIO(data), out, wanted, format_, most).size
    image = Image.open(out)
    image.load()
    assert image.size == (size.width, size.height)
    return image


def halves(mode: str, one: Any, other: Any) -> Image.Image:
    image = Image.new(mode, (80, 40), one)
    image.paste(other, (40, 0, 80, 40))
    return image


def wide_grey() -> Image.Image:
    return Image.frombytes("I;16", (80, 40), b"\x00\x80" * 80 * 40)


def palette() -> Image.Image:
    return halves("RGB", RED, GREEN).quantize(4)


SOURCES = {
    "RGB": (saved(halves("RGB", RED, GREEN), "PNG"), RED),
    "RGBA": (saved(halves("RGBA", (*RED, 255), (*GREEN, 0)), "PNG"), RED),
    "P": (saved(palette(), "PNG"), RED),
    "P with transparency": (saved(palette(), "PNG", transparency=3), RED),
    "L": (saved(halves("L", 200, 50), "PNG"), (200, 200, 200)),
    "LA": (saved(halves("LA", (200, 255), (50, 0)), "PNG"), (200, 200, 200)),
    "1": (saved(halves("1", 1, 0), "PNG"), (255, 255, 255)),
    "16 bit": (saved(wide_grey(), "PNG"), (128, 128, 128)),
    "CMYK": (saved(halves("CMYK", (0, 255, 255, 0), (0, 0, 0, 255)), "JPEG", quality=100), RED),
    "TIFF": (saved(halves("RGB", RED, GREEN), "TIFF"), RED),
    "BMP": (saved(halves("RGB", RED, GREEN), "BMP"), RED),
    "GIF": (saved(palette(), "GIF"), RED),
    "AVIF": (saved(halves("RGB", RED, GREEN), "AVIF", quality=95), RED),
}


@pytest.mark.parametrize("format_", MEDIA_TYPES)
@pytest.mark.parametrize("name", SOURCES)
def test_every_kind_of_picture_becomes_every_format(name: str, format_: str) -> None:
    data, color = SOURCES[name]
    image = transformed(data, Transformation(40, quality=95), format_)
    assert image.size == (40, 20)
    found = image.convert("RGB").getpixel((8, 10))
    assert isinstance(found, tuple)
    assert all(abs(a - b) <= 12 for a, b in zip(found, color, strict=True)), found


def test_transparency_is_kept_or_becomes_white() -> None:
    data = SOURCES["RGBA"][0]
    for format_ in ("png", "webp", "avif"):
        pixel = transformed(data, Transformation(40), format_).convert("RGBA").getpixel((35, 10))
        assert isinstance(pixel, tuple)
        assert pixel[3] == 0
    flat = transformed(data, Transformation(40), "jpg").getpixel((35, 10))
    assert isinstance(flat, tuple)
    assert min(flat) > 245


def wide_png(color_type: int, shown: tuple[int, ...], hidden: tuple[int, ...]) -> bytes:
    """Return a PNG with 16 bits per channel, whose right half has the transparent color `hidden`."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    packed = [struct.pack(f">{len(color)}H", *color) for color in (shown, hidden)]
    row = b"\0" + packed[0] * 40 + packed[1] * 40
    header = struct.pack(">IIBBBBB", 80, 40, 16, color_type, 0, 0, 0)
    parts = ((b"IHDR", header), (b"tRNS", packed[1]), (b"IDAT", zlib.compress(row * 40)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


WIDE = {  # sharp returns the same pixels
    "grey": (wide_png(0, (0x8000,), (0x1234,)), (128, 128, 128)),
    "nearly the same grey": (wide_png(0, (0x1235,), (0x1234,)), (18, 18, 18)),
    "colors": (wide_png(2, (0xFF00, 0x1000, 0x20), (0x1234, 0x5678, 0x9ABC)), (255, 16, 0)),
    "nearly the same color": (wide_png(2, (0x1234, 0x5678, 0x9ABD), (0x1234, 0x5678, 0x9ABC)), (18, 86, 154)),
}


@pytest.mark.parametrize("format_", ["png", "webp"])
@pytest.mark.parametrize("name", WIDE)
def test_the_transparent_color_of_16_bits_per_channel_is_kept(name: str, format_: str) -> None:
    data, color = WIDE[name]
    image = transformed(data, Transformation(40, quality=100), format_).convert("RGBA")
    shown, hidden = image.getpixel((5, 10)), image.getpixel((35, 10))
    assert isinstance(shown, tuple)
    assert isinstance(hidden, tuple)
    assert (shown[3], hidden[3]) == (255, 0)
    assert all(abs(a - b) <= 3 for a, b in zip(shown, color, strict=False)), shown


def grainy(blur: float) -> Image.Image:
    noise = [Image.effect_noise((300, 200), spread) for spread in (200, 150, 100)]
    return Image.merge("RGB", noise).filter(ImageFilter.GaussianBlur(blur))


def text() -> Image.Image:
    image = Image.new("RGB", (300, 200), "white")
    for y in range(0, 200, 20):
        ImageDraw.Draw(image).text((5, y), "Slack water 1:37, knots and fog", fill="black")
    return image


PHOTOGRAPH = saved(grainy(0), "JPEG", quality=90)
RIVALS = {
    "a photograph with noise": (PHOTOGRAPH, Transformation(280), ("jpg",), "jpg"),
    "a smooth photograph": (saved(grainy(2), "JPEG", quality=90), Transformation(280), ("jpg",), "webp"),
    "text": (saved(text(), "PNG"), Transformation(300), ("png",), "png"),
    "a photograph as PNG": (saved(grainy(0), "PNG"), Transformation(280), ("png",), "webp"),
    "a transparent canvas": (PHOTOGRAPH, Transformation(280, 280, "contain"), ("jpg",), "webp"),
    "several": (PHOTOGRAPH, Transformation(280), ("png", "jpg"), "jpg"),
}


@pytest.mark.parametrize("name", RIVALS)
def test_the_smaller_format_is_chosen(name: str) -> None:
    data, wanted, rivals, expected = RIVALS[name]
    lengths, chosen = {}, io.BytesIO()
    for format_ in ("webp", *rivals):
        made = io.BytesIO()
        transform(io.BytesIO(data), made, wanted, format_, MAX_PIXELS)
        lengths[format_] = len(made.getvalue())
    found = transform(io.BytesIO(data), chosen, wanted, "webp", MAX_PIXELS, rivals)
    image = Image.open(chosen)
    assert (found.format, image.format) == (expected, {"jpg": "JPEG"}.get(expected, expected.upper()))
    assert len(chosen.getvalue()) == lengths[expected]
    if "canvas" not in name:
        assert lengths[expected] == min(lengths.values())


def test_a_contained_picture_lies_on_a_transparent_or_white_canvas() -> None:
    data = SOURCES["RGB"][0]
    wanted = Transformation(40, 40, "contain")
    assert transformed(data, wanted, "png").getpixel((20, 2)) == (0, 0, 0, 0)
    white = transformed(data, wanted, "jpg").getpixel((20, 2))
    assert isinstance(white, tuple)
    assert min(white) > 245


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_rotation_is_applied_and_removed(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(halves("RGB", RED, GREEN), "JPEG", exif=exif, quality=95)
    image = transformed(data, Transformation(20), "png")
    assert image.size == ((20, 10) if orientation < 5 else (20, 40))
    assert not image.getexif()
    shown = Image.open(io.BytesIO(data))
    upright = {2: 0, 3: 3, 4: 1, 5: 5, 6: 4, 7: 6, 8: 2}  # Image.Transpose
    turned = shown.transpose(Image.Transpose(upright[orientation])) if orientation > 1 else shown
    expected = turned.resize(image.size).getpixel((3, 3))
    found = image.convert("RGB").getpixel((3, 3))
    assert isinstance(found, tuple)
    assert isinstance(expected, tuple)
    assert all(abs(a - b) < 30 for a, b in zip(found, expected, strict=True))


def test_colors_are_converted_to_srgb_and_the_profile_is_removed() -> None:
    lab = ImageCms.ImageCmsProfile(ImageCms.createProfile("LAB"))
    damaged = saved(halves("RGB", RED, GREEN), "PNG", icc_profile=b"not a profile")
    other = saved(halves("RGB", RED, GREEN), "PNG", icc_profile=lab.tobytes())  # not a profile for RGB
    for data in (damaged, other):
        image = transformed(data, Transformation(40))
        assert "icc_profile" not in image.info
        assert image.getpixel((5, 5)) == RED


@pytest.mark.parametrize("format_", ["png", "jpg"])
def test_an_srgb_profile_changes_no_color(format_: str) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    assert conversion_to_srgb(profile, "RGB") is None
    image = Image.radial_gradient("L").convert("RGB")
    image.paste((200, 30, 90), (0, 0, 100, 100))
    plain = transformed(saved(image, "PNG"), Transformation(100), format_)
    described = transformed(saved(image, "PNG", icc_profile=profile), Transformation(100), format_)
    assert described.tobytes() == plain.tobytes()


def test_other_profiles_are_converted() -> None:
    """The profile is sRGB with red and blue swapped, so the conversion swaps them."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    profile = bytearray(profile.replace(b"rXYZ", b"tXYZ").replace(b"bXYZ", b"rXYZ").replace(b"tXYZ", b"bXYZ"))
    data = saved(halves("RGB", (255, 0, 0), (0, 0, 255)), "PNG", icc_profile=bytes(profile))
    for _ in range(2):
        left = transformed(data, Transformation(40)).getpixel((5, 5))
        assert isinstance(left, tuple)
        assert left[2] > 250
        assert left[0] < 5


def test_an_animation_stays_one_in_webp_and_becomes_its_first_frame_elsewhere() -> None:
    frames = [Image.new("RGB", (80, 40), color) for color in (RED, GREEN, (0, 0, 255))]
    data = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=70, loop=0)
    moving = transformed(data, Transformation(40), "webp")
    assert (getattr(moving, "n_frames", 1), moving.size) == (3, (40, 20))
    still = transformed(data, Transformation(40), "png")
    assert getattr(still, "n_frames", 1) == 1
    assert still.convert("RGB").getpixel((5, 5)) == RED
    assert getattr(transformed(data, Transformation(40), "webp", most=80 * 40 * 2), "n_frames", 1) == 1


def test_a_jpeg_is_cropped_at_its_focus_after_it_was_decoded_smaller() -> None:
    image = Image.new("RGB", (1600, 400), RED)
    image.paste(GREEN, (1200, 0, 1600, 400))
    data = saved(image, "JPEG", quality=95)
    made = transformed(data, Transformation(50, 50, focus=(0.9, 0.5)))
    pixel = made.convert("RGB").getpixel((25, 25))
    assert isinstance(pixel, tuple)
    assert pixel[1] > 100 > pixel[0]


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF"])
def test_a_picture_is_cropped_where_it_has_the_most_detail(kind: str) -> None:
    image = Image.new("RGB", (800, 200), RED)
    for x in range(600, 700, 10):
        image.paste(GREEN, (x, 60, x + 5, 140))
    frames = {"save_all": True, "append_images": [image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)]}
    data = saved(image, kind, **(frames if kind == "GIF" else {}))
    for wanted in (Transformation(100, 100), Transformation(50, 50, rectangle=(500, 0, 300, 200))):
        made = transformed(data, replace(wanted, keeps_detail=True), "webp").convert("RGB")
        row = [made.getpixel((x, made.height // 2)) for x in range(made.width)]
        shares = [sum(isinstance(p, tuple) and p[1] > 40 for p in half) for half in (row[:50], row[50:])]
        assert sum(shares) > made.width * 0.2, row
    plain = saved(halves("RGB", RED, RED), kind)
    assert transformed(plain, Transformation(20, 20, keeps_detail=True)).size == (20, 20)
    assert transformed(saved(image.crop((0, 0, 1, 1)), kind), Transformation(1, 1, keeps_detail=True))


def test_a_picture_with_too_many_pixels_is_not_decoded() -> None:
    with pytest.raises(UntransformableError, match=r"has more than 100 pixels \(media"):
        transformed(SOURCES["RGB"][0], Transformation(10), most=100)


@pytest.mark.parametrize("orientation", [3, 6])
def test_a_tiff_and_an_animation_are_rotated(orientation: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    size = (20, 10) if orientation < 5 else (20, 40)
    frames = [halves("RGB", RED, GREEN), halves("RGB", RED, (0, 0, 255))]
    tiff = saved(frames[0], "TIFF", exif=exif)
    moving = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:], exif=exif, lossless=True)
    shown = {3: GREEN, 6: RED}[orientation]  # at the upper left
    for data, frames_made in ((tiff, 1), (moving, 2)):
        image = transformed(data, Transformation(20, quality=100), "webp")
        assert (image.size, getattr(image, "n_frames", 1)) == (size, frames_made)
        found = image.convert("RGB").getpixel((3, 3))
        assert isinstance(found, tuple)
        assert all(abs(a - b) < 30 for a, b in zip(found, shown, strict=True))


def test_an_invalid_rotation_is_ignored() -> None:
    exif = Image.Exif()
    exif[0x0112] = 9
    assert transformed(saved(halves("RGB", RED, GREEN), "JPEG", exif=exif), Transformation(20)).size == (
        20,
        10,
    )


def test_pages_and_previews_are_not_an_animation() -> None:
    pages = [halves("RGB", RED, GREEN), halves("RGB", GREEN, RED)]
    for kind in ("TIFF", "MPO"):
        data = saved(pages[0], kind, save_all=True, append_images=pages[1:])
        assert getattr(transformed(data, Transformation(20), "webp"), "n_frames", 1) == 1


def test_an_animation_that_plays_once_does_not_repeat() -> None:
    frames = [Image.new("RGB", (80, 40), color) for color in (RED, GREEN)]
    once = saved(frames[0], "GIF", save_all=True, append_images=frames[1:], duration=70)
    assert transformed(once, Transformation(20), "webp").info["loop"] == 1
