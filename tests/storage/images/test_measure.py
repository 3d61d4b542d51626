"""Tests of reading an image's dimensions from its header."""

import io
import struct
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from PIL import Image, ImageFile
from PIL.AvifImagePlugin import AvifImageFile
from PIL.WebPImagePlugin import WebPImageFile

from server.storage.images import measure as module
from server.storage.images.kinds import ImageSize
from server.storage.images.measure import measure, orientation
from tests.api.test_upload import picture

ORIENTATION_TAG = 0x0112
XMP = b'<x:xmpmeta><rdf:Description tiff:Orientation="6"/></x:xmpmeta>'
KINDS: dict[str, tuple[str, str, dict[str, Any]]] = {  # format, mode, and options of the encoder
    "WebP": ("WEBP", "RGB", {}),
    "WebP without loss": ("WEBP", "RGB", {"lossless": True}),
    "transparent WebP": ("WEBP", "RGBA", {}),
    "transparent WebP without loss": ("WEBP", "RGBA", {"lossless": True}),
    "WebP with XMP data": ("WEBP", "RGB", {"xmp": XMP}),
    "AVIF": ("AVIF", "RGB", {"speed": 10}),
    "transparent AVIF": ("AVIF", "RGBA", {"speed": 10}),
    "AVIF with XMP data": ("AVIF", "RGB", {"speed": 10, "xmp": XMP}),
    "grey AVIF": ("AVIF", "L", {"speed": 10, "subsampling": "4:0:0"}),
}


def encoded(kind: str, size: tuple[int, int], turned: int = 1, frames: int = 1) -> bytes:
    format_, mode, options = KINDS[kind]
    exif = Image.Exif()
    if turned != 1:
        exif[ORIENTATION_TAG] = turned
        options = options | {"exif": exif.tobytes()}
    first, *rest = [Image.effect_noise(size, 50 + 20 * number).convert(mode) for number in range(frames)]
    out = io.BytesIO()
    first.save(out, format_, save_all=frames > 1, append_images=rest, **options)
    return out.getvalue()


def size_of(data: bytes, ending: str) -> ImageSize | None:
    return measure(io.BytesIO(data), ending)


def size_by_decoder(data: bytes) -> ImageSize:
    with Image.open(io.BytesIO(data)) as image:
        width, height = image.size
        return ImageSize(height, width) if orientation(image) >= 5 else ImageSize(width, height)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("turned", range(1, 9))
def test_a_header_has_the_dimensions_of_the_decoded_image(kind: str, turned: int) -> None:
    format_ = KINDS[kind][0]
    # Pillow 13 crashes when it encodes an AVIF animation with an orientation.
    frames_of_second = 1 if format_ == "AVIF" and turned != 1 else 3
    for size, frames in (((31, 18), 1), ((64, 70), frames_of_second)):
        data = encoded(kind, size, turned, frames)
        expected = size_by_decoder(data)
        assert {expected.width, expected.height} == set(size)
        assert size_of(data, f".{format_.lower()}") == expected
        assert size_of(data, ".jpg") == expected


@pytest.mark.parametrize("kind", ["WebP", "AVIF"])
def test_the_server_does_not_start_a_decoder_for_a_header(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(image: ImageFile.ImageFile) -> None:
        raise AssertionError("decoded")

    for opener in (WebPImageFile, AvifImageFile):
        monkeypatch.setattr(opener, "_open", fail)
    for ending in (f".{kind.lower()}", ".jpg"):
        assert size_of(encoded(kind, (31, 18)), ending) == ImageSize(31, 18)


def test_an_animation_without_a_still_image_is_measured() -> None:
    data = bytearray(encoded("AVIF", (31, 18), frames=2))
    still = data.index(b"meta")
    data[still : still + 4] = b"free"
    assert size_of(bytes(data), ".avif") == ImageSize(31, 18)


@pytest.mark.parametrize("kind", ["WebP", "transparent WebP", "WebP without loss", "AVIF"])
def test_a_damaged_header_is_an_error_or_a_size(kind: str) -> None:
    data, ending = encoded(kind, (31, 18), 6), f".{KINDS[kind][0].lower()}"
    for at in range(min(len(data), 400)):
        size_of(data[:at], ending)
        size_of(data[:at] + b"\xff" + data[at + 1 :], ending)
        size_of(data[:at] + b"\0" + data[at + 1 :], ending)
    assert size_of(data[:20], ending) is None


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_a_png_has_one_color_profile_at_most() -> None:
    sent = picture(300, 200)
    profile = png_chunk(b"iCCP", b"k\0\0" + zlib.compress(bytes(1_000_000), 9))
    assert size_of(sent[:33] + profile + sent[33:], ".png") == ImageSize(300, 200)
    assert size_of(sent[:33] + profile * 2 + sent[33:], ".png") is None


def test_a_header_takes_limited_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = picture(300, 200)
    assert size_of(sent, ".png") == ImageSize(300, 200)
    monkeypatch.setattr(module, "_MAX_CPU_S", 0.0)
    assert size_of(sent, ".png") is None


def jpeg_with(part: bytes, count: int) -> bytes:
    sent = picture(300, 200, "JPEG")
    return sent[:2] + part * count + sent[2:]


LONG: dict[str, Callable[[int], bytes]] = {
    "Exif": lambda count: jpeg_with(b"\xff\xe1\x03\x3cExif\0\0" + bytes(820), count),
    "comments": lambda count: jpeg_with(b"\xff\xfe\0\x05abc", count),
}


@pytest.mark.parametrize("part", LONG)
def test_a_jpeg_has_limited_parts(part: str) -> None:
    assert size_of(LONG[part](100), ".jpg") == ImageSize(300, 200)
    assert size_of(LONG[part](600), ".jpg") is None
