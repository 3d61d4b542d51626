"""Tests of placeholders over HTTP: the `media.placeholders` setting."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from server.storage.checked_json import read_checked, write_checked
from server.storage.images.variants import PLACEHOLDER_KEY
from tests.api.test_upload import FILES, fetch, picture, upload
from tests.sites import Api, make

ROLES = "roles:\n  public: {upload: [find, findOne], post: [find, findOne]}\n"
SETTINGS = f"{ROLES}media: {{placeholders: true}}\n"
UPLOADS: dict[str, str | bytes] = {
    "content/uploads/a.png": picture(600, 400),
    "content/uploads/small.png": picture(60, 30),
    "content/uploads/text.txt": "text",
    "content/posts/one.md": "---\ntitle: One\ncover: a.png\n---\n",
}
NONE = {"placeholder": None, "color": None}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, {**FILES, **UPLOADS, "site.yaml": SETTINGS})


def preview(file: Any) -> dict[str, Any]:
    return {name: file[name] for name in NONE}


def files(api: Api) -> dict[str, Any]:
    return {file["url"]: file for file in fetch(api, "/api/upload/files").body}


def is_preview(found: dict[str, Any]) -> bool:
    return bool(len(found["placeholder"]) > 6 and re.fullmatch("#[0-9a-f]{6}", found["color"]))


def test_an_uploaded_image_has_a_placeholder_at_once(api: Api) -> None:
    file = upload(api, (picture(), "b.png")).body[0]
    assert is_preview(preview(file))
    assert preview(files(api)[file["url"]]) == preview(file)
    assert "placeholder" not in api.read(f"content{file['url']}.yaml")


def test_an_image_that_was_copied_into_the_site_gets_one_later(api: Api) -> None:
    assert preview(files(api)["/uploads/a.png"]) == NONE
    api.site.scale("content/uploads/a.png")
    assert is_preview(preview(files(api)["/uploads/a.png"]))
    for url in ("/uploads/small.png", "/uploads/text.txt"):
        assert preview(files(api)[url]) == NONE
    assert "content/uploads/a.png.yaml" not in api.files


@pytest.mark.parametrize("version", ["v4", "v5"])
def test_populated_media_have_one(api: Api, version: str) -> None:
    api.site.scale("content/uploads/a.png")

    def cover(query: str) -> Any:
        answer = fetch(api, f"/api/posts?{query}", **{"Strapi-Response-Format": version})
        post = answer.data[0]
        return post["attributes"]["cover"]["data"]["attributes"] if version == "v4" else post["cover"]

    expected = preview(files(api)["/uploads/a.png"])
    assert preview(cover("populate=cover")) == expected
    assert preview(cover("populate[cover][fields]=url")) == expected
    assert not NONE.keys() & cover("populate[cover][fields]=name").keys()


def test_without_the_setting_responses_do_not_contain_them(api: Api) -> None:
    api.site.scale("content/uploads/a.png")
    with_setting = fetch(api, "/api/posts?populate=cover").data[0]["cover"]
    (api.root / "site.yaml").write_text(ROLES)
    api.site.refresh()
    without = fetch(api, "/api/posts?populate=cover").data[0]["cover"]
    assert without == {name: value for name, value in with_setting.items() if name not in NONE}
    assert not NONE.keys() & files(api)["/uploads/a.png"].keys()
    assert "preview" not in json.dumps(fetch(api, "/api/upload/files").body).replace("previewUrl", "")


def test_images_that_were_resized_before_the_setting_get_one(tmp_path: Path) -> None:
    api = make(tmp_path, {**FILES, **UPLOADS, "site.yaml": ROLES})
    api.site.scale("content/uploads/a.png")
    [record] = (api.root / ".bifolio/formats").glob("*/formats.json")
    write_checked(record, {**read_checked(record), PLACEHOLDER_KEY: None})
    assert api.site.incomplete_images() == []
    (api.root / "site.yaml").write_text(SETTINGS)
    api.site.refresh()
    assert api.site.incomplete_images() == ["content/uploads/a.png"]
    api.site.scale("content/uploads/a.png")
    assert is_preview(preview(files(api)["/uploads/a.png"]))
    assert api.site.incomplete_images() == []


def test_the_openapi_document_describes_them(api: Api) -> None:
    schema = api.get("/openapi.json").body["components"]["schemas"]
    file = next(one for one in schema.values() if "isUrlSigned" in one.get("properties", {}))
    assert file["properties"]["color"]["type"] == ["string", "null"]
