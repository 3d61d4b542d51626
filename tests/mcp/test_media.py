"""Tests of find and get with the type `upload`: media files, and the images in them."""

import struct
import tracemalloc
import zlib
from base64 import b64decode
from collections.abc import Iterator
from io import BytesIO

import pytest
from PIL import Image

from tests.mcp.agents import Agent, valid
from tests.mcp.sites import FILES, GIF, SETTINGS
from tests.sites import Api, make


def png(width: int, height: int, image: Image.Image | None = None) -> bytes:
    file = BytesIO()
    (image or Image.new("RGB", (width, height), "teal")).save(file, "PNG")
    return file.getvalue()


def bomb(edge: int) -> bytes:
    """Return a small PNG file whose image is too large to be decoded."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", edge, edge, 1, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(edge * (1 + edge // 8)))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    files = {
        **FILES,
        "content/uploads/sub/pier.png": png(1200, 900),
        "content/uploads/sub/pier.png.yaml": "alternativeText: A pier\n",
        "content/uploads/noise.png": png(0, 0, Image.effect_noise((1000, 1000), 90).convert("RGB")),
        "content/uploads/bomb.png": bomb(12_000),
        "content/uploads/dot.gif": GIF,
        "content/uploads/terms.pdf": b"%PDF-1.4\n",
    }
    api = make(tmp_path_factory.mktemp("site"), files)
    api.token("finder", may=["upload.find", "upload.findOne"])
    api.token("nobody", may=[])
    yield api
    api.accounts.close()


def test_media_files_are_listed_with_filters(api: Api) -> None:
    agent = Agent(api, "finder")
    without = {"mime": {"$startsWith": "image/"}, "alternativeText": {"$null": True}}
    found = valid("find", agent.call("find", type="upload", filters=without, sort="name"))
    assert [(one["name"], one["mime"]) for one in found.data] == [
        ("bomb.png", "image/png"), ("dot.gif", "image/gif"), ("noise.png", "image/png"),
    ]  # fmt: skip
    assert "provider" not in found.data[0]
    page = agent.call("find", type="upload", fields=["name"], pageSize=1, page=2).content
    assert (page["total"], page["returned"], page["next"]["page"]) == (5, 1, 3)
    assert {*page["data"][0]} == {"id", "documentId", "name"}
    assert agent.call("site_info").content["media"] == {"type": "upload"}


def test_media_files_are_hidden_from_those_who_may_not_find_them(api: Api) -> None:
    agent = Agent(api, "nobody")
    assert "upload.find" in agent.call("find", type="upload").line
    assert "upload.findOne" in agent.call("get", type="upload", documentId="dot.gif", image=True).line
    assert "media" not in agent.call("site_info").content


def test_an_image_is_returned_with_its_file(api: Api) -> None:
    agent = Agent(api, "finder")
    [file] = agent.call("find", type="upload", filters={"name": "pier.png"}).data
    called = valid("get", agent.call("get", type="upload", documentId=file["documentId"], image=True))
    assert called.data["alternativeText"] == "A pier"
    [image] = called.images
    assert (image["type"], image["mimeType"]) == ("image", "image/jpeg")
    assert Image.open(BytesIO(b64decode(image["data"]))).size == (800, 600)
    assert agent.call("get", type="upload", documentId=file["documentId"]).images == []


def test_an_image_that_can_not_be_decoded_is_not_shown(api: Api) -> None:
    called = Agent(api).call("get", type="upload", documentId="bomb.png", image=True)
    assert called.is_error
    assert "bomb.png can't be shown" in called.line
    assert not called.images


def test_an_image_shrinks_until_it_fits(api: Api) -> None:
    [file] = Agent(api).call("find", type="upload", filters={"name": "noise.png"}).data
    answer = Agent(api).post(
        "tools/call",
        {"name": "get", "arguments": {"type": "upload", "documentId": file["documentId"], "image": True}},
    )
    _, image = answer.body["result"]["content"]
    width, height = Image.open(BytesIO(b64decode(image["data"]))).size
    assert 200 <= width == height < 800
    assert len(answer.raw) < 64_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"type": "upload", "documentId": "terms.pdf", "image": True}, "is not an image (application/pdf)"),
        ({"type": "upload", "documentId": "terms.pdf", "status": "draft"}, "with the type upload"),
        ({"type": "upload"}, '"documentId" is missing'),
        (
            {"type": "upload", "documentId": "terms.pfd"},
            '"terms.pfd"; did you mean "terms.pdf"?',
        ),
        ({"type": "tag", "documentId": "sea", "image": True}, "without the type upload"),
        ({"type": "upload", "documentId": "page"}, 'no media file "page"'),
        ({"type": "upload", "documentId": "../folders"}, 'no media file "../folders"'),
        ({"type": "upload", "documentId": "dot.gif/usage"}, 'no media file "dot.gif/usage"'),
        ({"type": "upload", "documentId": "dot.gif%2Fusage"}, 'no media file "dot.gif%2Fusage"'),
    ],
)
def test_wrong_arguments_for_files_are_named(api: Api, arguments: dict[str, object], says: str) -> None:
    called = Agent(api).call("get", **arguments)
    assert called.is_error
    assert says in called.line


def test_an_image_with_too_many_bytes_is_not_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = SETTINGS + "media: {transform: {enabled: false}}\n"
    files = {**FILES, "site.yaml": settings, "content/uploads/big.gif": GIF + bytes(20_000_000)}
    api = make(tmp_path_factory.mktemp("site"), files)
    [file] = Agent(api).call("find", type="upload").data
    tracemalloc.start()
    try:
        called = Agent(api).call("get", type="upload", documentId=file["documentId"], image=True)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()
    assert "larger than mcp.max_bytes allows" in called.line
    api.accounts.close()


def test_an_image_is_shown_if_the_site_transforms_no_images(tmp_path_factory: pytest.TempPathFactory) -> None:
    settings = SETTINGS + "media: {transform: {enabled: false}}\n"
    api = make(
        tmp_path_factory.mktemp("site"), {**FILES, "site.yaml": settings, "content/uploads/dot.gif": GIF}
    )
    [file] = Agent(api).call("find", type="upload").data
    [image] = Agent(api).call("get", type="upload", documentId=file["documentId"], image=True).images
    assert image["mimeType"] == "image/gif"
    api.accounts.close()
