"""The cache of picture formats: it must return formats that were made from the picture's current bytes."""

import io
import os
import threading
import time
from pathlib import Path

import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from server.auth.owner import is_session, make_key, spend_key
from server.jobs.job import Clock, JobContext, Timing
from server.paths import studio_folder
from server.site.background.jobs import DeleteStaleFiles
from server.storage.checked_json import encode_checked, read_checked
from server.storage.images.cache import ImageCache, read_picture
from server.storage.images.variants import cached_variants_and_placeholder
from server.storage.write_lock import WriteLock
from tests.api.test_upload import FILES, picture, upload
from tests.sites import Api, make, opened, write

CONTEXT = JobContext(Clock(), threading.Event(), lambda: None, is_woken=False)


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def key_of(data: bytes, extension: str = ".png") -> str:
    return read_picture(io.BytesIO(data), extension).key


@pytest.mark.parametrize("later", [picture(900, 700), picture()[:200]], ids=["other", "damaged"])
def test_a_picture_that_is_replaced_before_it_is_scaled_gets_no_formats_of_another(
    later: bytes, tmp_path: Path
) -> None:
    write(tmp_path, {"content/uploads/a.png": later})
    cache, key = ImageCache(tmp_path), key_of(picture())
    path = tmp_path / "content/uploads/a.png"
    assert not cache.make_variants_from_file(key, ".png", lambda: path.open("rb"))
    assert cached_variants_and_placeholder(cache.folder, key, "a.png") == (None, None)
    assert cache.make_variants_of("a.png") == (later == picture(900, 700))
    assert cache.may_retry(key)


def age(path: Path, days: float) -> None:
    at = time.time() - days * 86_400
    os.utime(path, (at, at))


def test_formats_that_no_file_has_are_removed_after_a_while(api: Api) -> None:
    used, gone, lately = (upload(api, (picture(width), "a.png")).body[0] for width in (600, 610, 620))
    cache, folder = api.site.image_cache, api.root / ".bifolio/formats"
    keys = [key_of(picture(width)) for width in (600, 610, 620)]
    for file in (gone, lately):
        assert api.ask("DELETE", f"/api/upload/files/{file['id']}").status == 200
    (folder / "tmpkilled").mkdir()
    for key in keys[:2]:
        age(folder / key, 31)
    sweep = DeleteStaleFiles(api.site, Timing())
    with WriteLock(folder / "lock", folder).held():
        assert sweep.run(CONTEXT) > 0  # as if another process were scaling a picture
        assert (folder / keys[1]).is_dir()
    sweep.run(CONTEXT)
    assert {path.name for path in folder.iterdir() if path.is_dir()} == {keys[0], keys[2]}
    assert api.get(used["formats"]["small"]["url"]).status == 200
    age(folder / keys[2], 31)
    again = upload(api, (picture(620), "a.png")).body[0]  # before the cache sees it
    assert cache.sweep([]) == 1  # the format that is in use
    assert (folder / keys[2]).is_dir()
    assert again["formats"]


def test_formats_of_a_picture_that_can_not_be_read_stay(api: Api) -> None:
    file = upload(api, (picture(), "a.png")).body[0]
    folder = api.root / ".bifolio/formats"
    age(folder / key_of(picture()), 31)
    (api.root / "content/uploads").rename(api.root / "aside")
    assert api.site.image_cache.sweep(api.site.state.snapshot.media.values()) == 0
    (api.root / "aside").rename(api.root / "content/uploads")
    assert api.get(file["formats"]["small"]["url"]).status == 200


def test_sessions_that_have_ended_are_removed(api: Api) -> None:
    folder = studio_folder(api.root)
    sessions = [spend_key(api.root, make_key(api.root)) or "" for _ in range(2)]
    make_key(api.root)
    for path in folder.iterdir():
        age(path, 31 if path.suffix == ".session" else 0.01)
    assert not is_session(api.root, sessions[0], 30 * 86_400.0)
    sessions.append(spend_key(api.root, make_key(api.root)) or "")
    old_key = make_key(api.root)
    for path in folder.glob("*.key"):
        age(path, 0.1)
    DeleteStaleFiles(api.site, Timing()).run(CONTEXT)
    assert len(list(folder.iterdir())) == 1
    assert is_session(api.root, sessions[2], 30 * 86_400.0)
    assert spend_key(api.root, old_key) is None


def damage(path: Path, how: str) -> None:
    data = path.read_bytes()
    path.unlink()
    if how == "folder":
        path.mkdir()
    elif how != "missing":
        path.write_bytes(
            {"empty": b"", "cut": data[: len(data) // 2], "zeros": bytes(len(data)), "other": data[::-1]}[how]
        )


@pytest.mark.parametrize("how", ["empty", "cut", "zeros", "other", "folder", "missing"])
@pytest.mark.parametrize("name", ["formats.json", "small.png"])
def test_damaged_formats_are_made_again(api: Api, name: str, how: str) -> None:
    file = upload(api, (picture(900, 700), "a.png")).body[0]
    url, before = file["formats"]["small"]["url"], api.ask("GET", f"/api/upload/files/{file['id']}").body
    small = api.ask("GET", url).raw
    damage(api.root / ".bifolio/formats" / key_of(picture(900, 700)) / name, how)
    assert api.ask("GET", url).status == 404
    wanting = api.site.incomplete_images()
    assert len(wanting) == 1
    api.site.scale(wanting[0])
    assert api.ask("GET", f"/api/upload/files/{file['id']}").body == before
    assert api.ask("GET", url).raw == small
    assert api.site.incomplete_images() == []


@pytest.mark.parametrize("how", ["empty", "cut", "zeros", "folder"])
def test_damaged_formats_are_made_again_after_a_start(api: Api, how: str) -> None:
    upload(api, (picture(900, 700), "a.png"))
    (before,) = api.site.state.snapshot.media.values()
    damage(api.root / ".bifolio/formats" / key_of(picture(900, 700)) / "formats.json", how)
    site = opened(api.root)
    for path in site.incomplete_images():
        site.scale(path)
    (after,) = site.state.snapshot.media.values()
    assert after.get("formats") == before.get("formats")


def test_a_damaged_record_of_known_pictures_is_not_believed(tmp_path: Path) -> None:
    write(tmp_path, {"content/uploads/a.png": picture(900, 700)})
    cache = ImageCache(tmp_path)
    size = cache.describe_image("a.png")[0]
    cache.save()
    record = cache.folder / "known.json"
    record.write_bytes(record.read_bytes().replace(b"900", b"800"))
    assert ImageCache(tmp_path).describe_image("a.png")[0] == size


def test_formats_that_are_whole_are_not_made_again(api: Api) -> None:
    upload(api, (picture(900, 700), "a.png"))
    folder = api.root / ".bifolio/formats" / key_of(picture(900, 700))
    before = {path.name: path.stat().st_ino for path in folder.iterdir()}
    cache = ImageCache(api.root)
    assert cache.make_variants_from_file(folder.name, ".png", lambda: io.BytesIO(picture(900, 700)))
    assert {path.name: path.stat().st_ino for path in folder.iterdir()} == before


def with_comment(extension: str) -> bytes:
    data, format_ = io.BytesIO(), {".jpg": "JPEG", ".gif": "GIF", ".png": "PNG"}[extension]
    frames = [Image.new("RGB", (900, 700), color) for color in ("red", "blue")]
    more = {"save_all": True, "append_images": frames[1:]} if extension == ".gif" else {}
    notes = PngInfo()
    notes.add_text("Comment", "swordfish")
    comment = {"pnginfo": notes} if extension == ".png" else {"comment": b"swordfish"}
    frames[0].save(data, format_, **comment, **more)
    assert b"swordfish" in data.getvalue()
    return data.getvalue()


@pytest.mark.parametrize("extension", [".jpg", ".gif", ".png"])
def test_formats_contain_no_comments(api: Api, extension: str) -> None:
    file = upload(api, (with_comment(extension), f"a{extension}")).body[0]
    assert len(file["formats"]) == 3
    for made in file["formats"].values():
        assert b"swordfish" not in api.ask("GET", made["url"]).raw


def test_formats_of_an_earlier_version_are_served_until_they_are_made_again(api: Api) -> None:
    file = upload(api, (with_comment(".jpg"), "a.jpg")).body[0]
    url, before = file["formats"]["small"]["url"], api.ask("GET", f"/api/upload/files/{file['id']}").body
    record = api.root / ".bifolio/formats" / key_of(with_comment(".jpg"), ".jpg") / "formats.json"
    assert api.site.incomplete_images() == []
    values = read_checked(record)
    record.write_bytes(encode_checked({key: value for key, value in values.items() if key != "version"}))
    assert api.ask("GET", url).status == 200
    (outdated,) = api.site.incomplete_images()
    api.site.scale(outdated)
    assert read_checked(record) == values
    assert api.site.incomplete_images() == []
    assert api.ask("GET", f"/api/upload/files/{file['id']}").body == before
