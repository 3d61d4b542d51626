"""`bifolio export --images`: named transformations of images as files."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tests.api.test_upload import FILES, picture
from tests.sites import write
from tests.tools.test_export import exported, files_of, run

SETTINGS = """roles:
  public: {post: [find, findOne]}
media:
  formats:
    card: {w: 60, h: 60, format: webp}
    wide: {width: 200}
export:
  types: {post: {populate: {cover: true}}}
"""
UPLOADS: dict[str, str | bytes] = {
    "content/uploads/b/a c.png": picture(600, 400),
    "content/uploads/b/a c.jpg": picture(300, 100, "JPEG"),
    "content/uploads/unused.png": picture(300, 300),
    "content/posts/one.md": "---\ntitle: One\ncover: b/a c.png\n---\n![](/uploads/b/a%20c.png?key=card)\n",
    "content/posts/two.md": "---\ntitle: Two\ncover: b/a c.jpg\n---\n",
}
CARD, OTHER_CARD = "uploads/b/card_a c.png.webp", "uploads/b/card_a c.jpg.webp"
WIDE, OTHER_WIDE = "uploads/b/wide_a c.png", "uploads/b/wide_a c.jpg"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path / "site", {**FILES, **UPLOADS, "site.yaml": SETTINGS})
    return tmp_path / "site"


def covers(files: dict[str, bytes]) -> list[Any]:
    return [post["cover"]["formats"] for post in json.loads(files["api/posts.json"])["data"]]


def test_the_images_that_responses_describe_are_files(root: Path, tmp_path: Path) -> None:
    files = exported(root, tmp_path / "out", "--images")
    assert {path for path in files if "card_" in path or "wide_" in path} == {
        CARD,
        OTHER_CARD,
        WIDE,
        OTHER_WIDE,
    }
    for formats in covers(files):
        for name in ("card", "wide"):
            described = formats[name]
            path = described["url"].replace("%20", " ").removeprefix("/")
            image = Image.open(io.BytesIO(files[path]))
            assert image.size == (described["width"], described["height"])
            assert f".{str(image.format).lower().replace('jpeg', 'jpg')}" == described["ext"]
    listed = json.loads(files["bifolio-export.json"])["files"]
    assert listed[CARD]["request"] == "/uploads/b/a%20c.png?key=card"


def test_only_the_urls_differ(root: Path, tmp_path: Path) -> None:
    plain = covers(exported(root, tmp_path / "plain"))
    changed = covers(exported(root, tmp_path / "out", "--images"))
    for before, after in zip(plain, changed, strict=True):
        for name in ("card", "wide"):
            assert "?key=" in before[name]["url"]
            assert {**before[name], "url": ""} == {**after[name], "url": ""}
        assert before["thumbnail"] == after["thumbnail"]


def test_urls_begin_with_the_base_url(root: Path, tmp_path: Path) -> None:
    files = exported(root, tmp_path / "out", "--images", "--base-url", "https://cdn.example.org")
    assert covers(files)[0]["card"]["url"] == "https://cdn.example.org/uploads/b/card_a%20c.png.webp"
    assert CARD in files


def test_an_uploaded_file_with_the_same_name_is_kept(root: Path, tmp_path: Path) -> None:
    write(root, {"content/uploads/b/card_a c.png.webp": picture(20, 20, "WEBP")})
    files = exported(root, tmp_path / "out", "--images")
    assert covers(files)[0]["card"]["url"] == "/uploads/b/_card_a%20c.png.webp"
    assert Image.open(io.BytesIO(files["uploads/b/_card_a c.png.webp"])).size == (60, 60)


def test_a_repeated_export_changes_nothing_and_removes_what_is_obsolete(root: Path, tmp_path: Path) -> None:
    first = exported(root, tmp_path / "out", "--images")
    assert " 0 written" in run(root, tmp_path / "out", "--images").output
    assert files_of(tmp_path / "out") == first
    assert CARD not in exported(root, tmp_path / "out")


def test_a_damaged_image_is_left_out_with_a_warning(root: Path, tmp_path: Path) -> None:
    write(root, {"content/uploads/b/a c.png": picture(600, 400)[:300]})
    done = run(root, tmp_path / "out", "--images")
    assert done.exit_code == 0
    assert (
        "2 of the images that media.formats defines could not be created, so their URLs do not work"
        in done.output
    )
    assert CARD not in files_of(tmp_path / "out")


def test_without_formats_the_option_changes_nothing(root: Path, tmp_path: Path) -> None:
    (root / "site.yaml").write_text(SETTINGS.replace("formats:", "transform: {enabled: false}\n  formats:"))
    plain, changed = exported(root, tmp_path / "plain"), exported(root, tmp_path / "out", "--images")
    assert plain == changed
