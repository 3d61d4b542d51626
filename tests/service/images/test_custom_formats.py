"""Tests of the named transformations in `formats` of images: the `media.formats` setting."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from server.config.reader import check_named_formats, survey_settings
from server.config.transformation import UPLOAD_FORMATS
from server.storage.images.variants import VARIANTS
from tests.api.test_upload import FILES, fetch, picture
from tests.git import commit_all, git
from tests.sites import Api, make, write

SETTINGS = """roles:
  public: {upload: [find, findOne], post: [find, findOne]}
media:
  formats:
    card: {w: 480, h: 320, fit: cover, format: webp}
    wide: {width: 200}
    square: {w: 90, h: 90, fit: contain, format: auto}
  transform:
    max_pixels: 600000
    qualities: [50]
"""
UPLOADS: dict[str, str | bytes] = {
    "content/uploads/b/a c.png": picture(600, 400),
    "content/uploads/b/a c.png.yaml": "name: Bay.png\ncaption: Bay\n",
    "content/uploads/small.gif": picture(60, 30, "GIF"),
    "content/uploads/large.png": picture(900, 700),
    "content/uploads/draw.svg": '<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
    "content/uploads/text.txt": "text",
    "content/posts/one.md": "---\ntitle: One\ncover: b/a c.png\n---\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, {**FILES, **UPLOADS, "site.yaml": SETTINGS})


def files(api: Api) -> dict[str, Any]:
    return {file["url"]: file for file in api.get("/api/upload/files").body}


def cover(api: Api) -> Any:
    return api.get("/api/posts?populate=cover").data[0]["cover"]["formats"]


def configure(api: Api, text: str) -> None:
    (api.root / "site.yaml").write_text(text)
    api.site.refresh()


def test_formats_have_the_fields_of_those_made_at_upload(api: Api) -> None:
    shown = files(api)["/uploads/b/a%20c.png"]["formats"]
    assert list(shown) == ["card", "wide", "square"]  # before the image has been resized
    assert shown["card"] == {
        "name": "card_Bay.webp",
        "hash": "card_a c",
        "ext": ".webp",
        "mime": "image/webp",
        "path": None,
        "width": 480,
        "height": 320,
        "size": None,
        "sizeInBytes": None,
        "url": "/uploads/b/a%20c.png?key=card",
    }
    assert (shown["wide"]["ext"], shown["wide"]["mime"]) == (".png", "image/png")


def test_formats_made_at_upload_stay_as_they_are(api: Api) -> None:
    assert api.site.image_cache.make_variants_of("b/a c.png")
    api.site.refresh(["content/uploads/b/a c.png"])
    shown = files(api)["/uploads/b/a%20c.png"]["formats"]
    assert list(shown) == ["thumbnail", "small", "card", "wide", "square"]
    configure(api, SETTINGS.replace("media:", "other:").split("other:")[0])
    assert list(files(api)["/uploads/b/a%20c.png"]["formats"].values()) == list(shown.values())[:2]


def test_the_addresses_return_images_of_exactly_these_dimensions(api: Api) -> None:
    seen = 0
    for file in files(api).values():
        for name in ("card", "wide", "square"):
            described = (file["formats"] or {}).get(name)
            if described:
                answer = fetch(api, described["url"])
                image = Image.open(io.BytesIO(answer.raw))
                assert image.size == (described["width"], described["height"])
                assert answer.headers["Content-Type"] == described["mime"]
                seen += 1
    assert seen == 6


@pytest.mark.parametrize("url", ["/uploads/draw.svg", "/uploads/text.txt", "/uploads/large.png"])
def test_files_that_cannot_be_transformed_have_none(api: Api, url: str) -> None:
    assert files(api)[url]["formats"] is None


@pytest.mark.parametrize("version", ["v4", "v5"])
def test_populated_media_have_them(api: Api, version: str) -> None:
    answer = api.ask(
        "GET", "/api/posts?populate=cover", "public", headers={"Strapi-Response-Format": version}
    )
    post = answer.body["data"][0]
    cover = post["attributes"]["cover"]["data"]["attributes"] if version == "v4" else post["cover"]
    assert cover["formats"]["card"]["url"] == "/uploads/b/a%20c.png?key=card"
    assert cover["formats"]["wide"]["height"] == 133


def test_formats_follow_the_settings_without_a_commit(api: Api) -> None:
    commit_all(api.root)
    before = cover(api)["card"]
    configure(api, SETTINGS.replace("w: 480, h: 320", "w: 100, h: 100"))
    after = cover(api)["card"]
    assert ((before["width"], before["height"]), (after["width"], after["height"])) == (
        (480, 320),
        (100, 100),
    )
    assert files(api)["/uploads/b/a%20c.png"]["formats"]["card"] == after
    assert git(api.root, "status", "--porcelain").split() == ["M", "site.yaml"]


def test_formats_follow_the_size_of_the_image(api: Api) -> None:
    assert cover(api)["wide"]["height"] == 133
    (api.root / "content/uploads/b/a c.png").write_bytes(picture(300, 300))
    api.site.refresh()
    assert cover(api)["wide"]["height"] == 200


def test_disabled_transformations_leave_them_out_with_a_warning(api: Api) -> None:
    configure(api, SETTINGS.replace("transform:\n", "transform:\n    enabled: false\n"))
    assert files(api)["/uploads/b/a%20c.png"]["formats"] is None
    [problem] = check_named_formats(api.site.state.settings)
    assert str(problem).startswith("site.yaml:4:")
    assert "media.formats has no effect, because media.transform.enabled is false" in str(problem)
    assert problem in api.site.problems


def test_the_openapi_document_says_that_their_size_is_unknown(api: Api) -> None:
    schema = api.get("/openapi.json").body["components"]["schemas"]["ImageFormat"]["properties"]
    assert schema["size"]["type"] == ["number", "null"]
    configure(api, SETTINGS.split("media:")[0])
    schema = api.get("/openapi.json").body["components"]["schemas"]["ImageFormat"]["properties"]
    assert schema["size"]["type"] == "number"


def test_the_reserved_names_are_those_of_the_variants_made_at_upload() -> None:
    assert tuple(VARIANTS) == UPLOAD_FORMATS


WRONG = {
    "{small: {w: 1}}": 'media.formats can\'t contain "small", which is the name of a variant from the upload',
    "{a b: {w: 1}}": '"a b" is not a valid name in media.formats',
    "{a: {w: 0}}": "media.formats.a.w must be a whole number from 1 to 32767",
    "{hero: {w: 1}}": '"hero" is in media.formats and in media.transform.presets',
}


@pytest.mark.parametrize("written", WRONG)
def test_an_invalid_name_or_value_is_refused(tmp_path: Path, written: str) -> None:
    presets = "{presets: {hero: {w: 1}}}"
    write(tmp_path, {"site.yaml": f"media:\n  transform: {presets}\n  formats: {written}\n"})
    [error] = survey_settings(tmp_path)[1]
    assert str(error).startswith("site.yaml:3:")
    assert WRONG[written] in str(error)
