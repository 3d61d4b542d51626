"""Tests of malicious pictures: too large, too many frames, scripts, entities, or two file types in one.

The server must store each picture within seconds without decoding it. It must serve the picture with its real
type and must not let scripts in it run.
"""

import io
import struct
import time
import zlib
from collections.abc import Iterator
from itertools import pairwise

import pytest
from PIL import Image

from tests.api.test_upload import FILES, fetch, upload
from tests.sites import Api, make

SCRIPT = b"<script>alert(1)</script>"
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="10">%s</svg>'
SETTINGS = "api: {upload_limit: 9 MB}\nroles: {public: {upload: [find]}}\n"


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made = make(tmp_path_factory.mktemp("pictures"), {**FILES, "site.yaml": SETTINGS})
    yield made
    made.accounts.close()


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def huge_png(side: int) -> bytes:
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(5_000_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def saved(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("L", (16, 12)).save(out, kind)
    return out.getvalue()


def long_gif(frames: int) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", 16, 12, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, 1, 1, 0) + b"\x02\x02\x44\x01\x00"
    return head + frame * frames + b";"


def entities() -> bytes:
    """Return an SVG picture whose entities expand to gigabytes."""
    names = "abcdefghij"
    steps = [f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in pairwise(names)]
    kinds = '<!ENTITY a "aaaaaaaaaa">' + "".join(steps)
    return f"<!DOCTYPE svg [{kinds}]>".encode() + SVG % (b"&j;", b"&j;")


# By name: the file, its type when served, and its width (None: unknown).
PICTURES: dict[str, tuple[bytes, str, int | None]] = {
    "pixels.png": (huge_png(30_000), "image/png", None),
    "frames.gif": (long_gif(10_000), "image/gif", 16),
    "script.svg": (SVG % (b"10", SCRIPT), "image/svg+xml", 10),
    "entities.svg": (entities(), "image/svg+xml", None),
    "outside.svg": (
        b'<!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>' + SVG % (b"10", b"&x;"),
        "image/svg+xml",
        None,
    ),
    "png-and-page.png": (saved("PNG") + SCRIPT, "image/png", 16),
    "png-and-page.html": (saved("PNG") + SCRIPT, "image/png", 16),
    "gif-and-page.html": (saved("GIF") + SCRIPT, "image/gif", 16),
    "jpeg-and-page.html": (saved("JPEG") + SCRIPT, "image/jpeg", 16),
    "gif-and-script.js": (b"GIF89a/*\x01\x00" + bytes(20) + b"*/=1;alert(1)", "image/gif", None),
    "png-and-zip.zip": (saved("PNG") + b"PK\x03\x04", "image/png", 16),
    "page.png": (b"<!DOCTYPE html>" + SCRIPT, "text/plain", None),
    "drawing.png": (SVG % (b"10", SCRIPT), "text/plain", None),
    "png.svg": (saved("PNG"), "image/png", 16),
    "page.html": (SCRIPT, "text/html", None),
    "page.xhtml": (b"<html xmlns='http://www.w3.org/1999/xhtml'/>", "application/xhtml+xml", None),
    "page.xml": (b"<?xml-stylesheet href='x'?><a/>", "text/xml", None),
    "page": (b"<html>" + SCRIPT, "application/octet-stream", None),
}


@pytest.mark.parametrize("name", PICTURES)
def test_what_a_picture_is_served_as(api: Api, name: str) -> None:
    data, mime, width = PICTURES[name]
    began = time.thread_time()
    (file,) = upload(api, (data, name)).body
    assert time.thread_time() - began < 3
    assert (file["mime"], file["width"]) == (mime, width)
    answer = fetch(api, file["url"])
    assert answer.raw == data
    assert answer.headers["Content-Type"].partition(";")[0] == mime
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Security-Policy"] == "default-src 'self'; script-src 'none'; sandbox"
    for made in (file["formats"] or {}).values():
        assert fetch(api, made["url"]).headers["Content-Type"] == mime
