"""Tests of images by URL for media in a bucket: `/uploads/…?width=…`."""

import io
import re
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import obstore
import pytest
from PIL import Image

from server.api.routes import uploads
from server.storage.bucket import bucket as buckets
from server.storage.bucket import shared_images
from tests.api.test_bucket import fetch, picture, sha256, site_of, upload
from tests.api.test_images import IMMUTABLE
from tests.buckets import S3
from tests.git import commit_all
from tests.sites import Answer, Api, make, write
from tests.waiting import until


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set short timeouts for a bucket, without retries or a pause after a failure."""
    monkeypatch.setattr(buckets, "BACKOFF_S", 0.0)
    monkeypatch.setattr(buckets, "BRIEF_BACKOFF_S", 0.0)
    monkeypatch.setattr(buckets, "BRIEF_REQUEST_TIMEOUT_S", 1)
    monkeypatch.setattr(buckets, "REQUEST_TIMEOUT_S", 4)
    monkeypatch.setattr(buckets, "MAX_RETRIES", 0)


@pytest.fixture
def api(tmp_path: Path, s3: S3) -> Iterator[Api]:
    made = make(tmp_path, site_of(s3))
    yield made
    made.accounts.close()


def image(api: Api, width: int = 600, height: int = 400) -> Any:
    return upload(api, (picture(width, height), "a.png")).body[0]


def configure(api: Api, s3: S3, **media: str) -> None:
    (api.root / "site.yaml").write_text(site_of(s3, **media)["site.yaml"])
    api.site.refresh()


# --- versions -------------------------------------------------------------------------------------


def test_the_url_of_a_named_format_contains_its_version(api: Api, s3: S3) -> None:
    def shown() -> str:
        return str(api.ask("GET", "/api/upload/files").body[0]["formats"]["card"]["url"])

    configure(api, s3, formats="{card: {w: 80, h: 80}}")
    file = image(api)
    first = shown()
    assert first.startswith(f"{file['url']}?key=card&v=")
    assert fetch(api, first).headers["Cache-Control"] == IMMUTABLE
    focus = '{"focalPoint": {"x": 10, "y": 20}}'
    upload(api, query=f"?id={file['id']}", fileInfo=focus)
    second = shown()
    configure(api, s3, formats="{card: {w: 90, h: 90}}")
    third = shown()
    assert len({first, second, third}) == 3
    assert fetch(api, third).headers["Cache-Control"] == IMMUTABLE
    for old in (first, second):
        assert fetch(api, old).headers["Cache-Control"] == "public, max-age=3600"


@pytest.mark.parametrize(("format_", "changes"), [("webp", True), ("png", False)])
def test_the_version_of_a_possible_animation_changes_with_max_pixels(
    api: Api, s3: S3, format_: str, changes: bool
) -> None:
    image(api)
    urls = set[str]()
    for most in (1_000_000, 2_000_000):
        transform = f"{{max_pixels: {most}}}"
        configure(api, s3, formats=f"{{card: {{w: 80, format: {format_}}}}}", transform=transform)
        urls.add(str(api.ask("GET", "/api/upload/files").body[0]["formats"]["card"]["url"]))
    assert len(urls) == (2 if changes else 1)


def test_a_file_in_a_bucket_has_its_hash_as_version(api: Api) -> None:
    file = image(api)
    stored = file["provider_metadata"]
    assert fetch(api, f"{file['url']}?v={stored['sha256']}").headers["Cache-Control"] == IMMUTABLE
    small, digest = file["formats"]["small"]["url"], stored["formats"]["small"]["sha256"]
    assert fetch(api, f"{small}?v={digest}").headers["Cache-Control"] == IMMUTABLE
    assert "immutable" not in fetch(api, f"{small}?v={stored['sha256']}").headers["Cache-Control"]


@pytest.mark.parametrize("mode", [{"serve": "sign"}, {"public_url": "https://media.example.org/site"}])
def test_a_redirect_to_the_bucket_is_not_immutable(api: Api, s3: S3, mode: dict[str, str]) -> None:
    configure(api, s3, **mode)
    file = image(api)
    for query in ("", "width=50&"):
        answer = fetch(api, f"{file['url']}?{query}v={file['provider_metadata']['sha256']}")
        assert "immutable" not in answer.headers["Cache-Control"] or answer.status == 200


# --- transformed images in the bucket -------------------------------------------------------------

MODES = {"redirect": {"public_url": "https://media.example.org/site"}, "sign": {"serve": "sign"}}


def derivatives(s3: S3) -> dict[str, bytes]:
    return {key: data for key, data in s3.objects().items() if key.startswith("derivatives/")}


def shared(s3: S3, number: int = 1) -> dict[str, bytes]:
    """Return the transformed images in the bucket, once there are so many."""
    until(lambda: len(derivatives(s3)) >= number)
    return derivatives(s3)


def attributes(data: bytes) -> dict[str, str]:
    return {"Content-Type": "image/png", "sha256": sha256(data)}


def forget(api: Api) -> None:
    """Delete this machine's copies of transformed images."""
    shutil.rmtree(api.root / ".bifolio/images", ignore_errors=True)


def machine(folder: Path, first: Api, s3: S3, **media: str) -> Api:
    """Return a second machine with the files of the first."""
    write(folder, site_of(s3, **media))
    shutil.copytree(first.root / "content/uploads", folder / "content/uploads")
    return make(folder, {})


def followed(s3: S3, answer: Answer) -> bytes:
    """Return what a redirect to the bucket leads to."""
    assert answer.status == 302, answer.raw[:200]
    path = urlsplit(answer.headers["Location"]).path
    return bytes(obstore.get(s3.store, path[path.index("derivatives/") :]).bytes())


def test_a_transformed_image_is_stored_in_the_bucket(api: Api, s3: S3) -> None:
    url = f"{image(api)['url']}?width=100&format=webp"
    answer = fetch(api, url)
    [(key, data)] = shared(s3).items()
    assert (answer.status, data) == (200, answer.raw)
    assert re.fullmatch(r"derivatives/([0-9a-f]{2})/\1[0-9a-f]{30}", key)
    headers = s3.headers(key)
    assert (headers["Content-Type"], headers["sha256"]) == ("image/webp", sha256(data))
    assert headers["Cache-Control"] == IMMUTABLE


def test_another_machine_finds_a_transformed_image(api: Api, s3: S3, tmp_path: Path) -> None:
    url = f"{image(api)['url']}?width=100"
    fetch(api, url)
    [key] = shared(s3)
    # An image that only the first machine can have made.
    other_data = picture(7, 5)
    obstore.put(s3.store, key, other_data, attributes=attributes(other_data))
    other = machine(tmp_path / "other", api, s3)
    assert fetch(other, url).raw == other_data
    assert [*other.root.glob(".bifolio/media/*/*")] == []  # The original has not been downloaded.
    forget(api)
    assert fetch(api, url).raw == other_data


@pytest.mark.parametrize("damage", [b"", b"garbage", None])
@pytest.mark.parametrize("keeps_digest", [True, False])
def test_a_damaged_image_in_the_bucket_is_made_again(
    api: Api, s3: S3, damage: bytes | None, keeps_digest: bool
) -> None:
    url = f"{image(api)['url']}?width=100"
    good = fetch(api, url).raw
    [key] = shared(s3)
    changed = good[:-1] + b"x" if damage is None else damage
    obstore.put(s3.store, key, changed, attributes=attributes(good) if keeps_digest else {})
    forget(api)
    assert fetch(api, url).raw == good
    until(lambda: derivatives(s3) == {key: good})


def webp() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (7, 5)).save(out, "WEBP")
    return out.getvalue()


WRONG = {"empty": b"", "text": b"not an image", "another format": webp()}


@pytest.mark.parametrize("wrong", WRONG)
def test_an_object_that_is_not_an_image_in_its_format_is_made_again(api: Api, s3: S3, wrong: str) -> None:
    url = f"{image(api)['url']}?width=100"
    good = fetch(api, url).raw
    [key] = shared(s3)
    data = WRONG[wrong]
    obstore.put(s3.store, key, data, attributes=attributes(data))
    forget(api)
    assert fetch(api, url).raw == good
    until(lambda: derivatives(s3) == {key: good})


@pytest.mark.parametrize("mode", MODES)
def test_clients_are_redirected_to_transformed_images(api: Api, s3: S3, mode: str) -> None:
    configure(api, s3, **MODES[mode])
    url = f"{image(api)['url']}?width=100&format=auto"
    answer = fetch(api, url, Accept="image/webp")
    data = followed(s3, answer)
    assert Image.open(io.BytesIO(data)).size == (100, 67)
    assert answer.headers["Cache-Control"] == "public, max-age=60"
    assert "Accept" in answer.headers["Vary"]
    head = api.ask("HEAD", url, "public", headers={"Accept": "image/webp"})
    assert (head.status, head.raw) == (302, b"")
    assert urlsplit(head.headers["Location"]).path == urlsplit(answer.headers["Location"]).path
    location = answer.headers["Location"]
    if mode == "redirect":
        assert location.startswith("https://media.example.org/site/derivatives/")
    else:
        assert "X-Amz-Expires=900" in location
        assert s3.ask("GET", location.removeprefix(s3.url)) == 200


@pytest.mark.parametrize("mode", MODES)
def test_a_redirect_leads_to_an_image_whatever_was_deleted(
    api: Api, s3: S3, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_images, "CHECK_TTL_S", 0.0)
    configure(api, s3, **MODES[mode])
    url = f"{image(api)['url']}?width=100"
    good = followed(s3, fetch(api, url))
    [key] = derivatives(s3)
    obstore.delete(s3.store, [key])
    assert followed(s3, fetch(api, url)) == good
    forget(api)
    assert followed(s3, fetch(api, url)) == good
    obstore.put(s3.store, key, good[:-1] + b"x", attributes=attributes(good))
    assert followed(s3, fetch(api, url)) == good
    obstore.delete(s3.store, [key])
    forget(api)
    assert followed(s3, fetch(api, url)) == good


def test_images_on_disk_and_in_commits_stay_out_of_the_bucket(tmp_path: Path, s3: S3) -> None:
    files = {**site_of(s3, serve="sign"), "content/uploads/b.png": picture(60, 40)}
    write(tmp_path, files)
    commit_all(tmp_path)
    api = make(tmp_path, {})
    (tmp_path / "content/uploads/b.png").write_bytes(picture(80, 20))
    api.site.refresh()
    assert fetch(api, "/uploads/b.png?width=20").status == 200
    assert api.ask("GET", "/uploads/b.png?width=20&at=HEAD").status == 200
    url = f"{image(api)['url']}?width=20"
    assert fetch(api, url).status == 302  # comes after the others would have come
    assert len(derivatives(s3)) == 1


def test_the_least_recently_used_images_in_the_bucket_are_evicted(
    api: Api, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_images, "USE_INTERVAL_S", 0.0)
    url, most = image(api)["url"], 20_000
    originals = s3.objects()
    obstore.put(s3.store, "derivatives/notes.txt", bytes(2 * most))
    lines = site_of(s3)["site.yaml"].replace("roles:", f"  transform: {{cache: {most}}}\nroles:")
    (api.root / "site.yaml").write_text(lines)
    api.site.refresh()
    first = fetch(api, f"{url}?width=60")
    [key] = [key for key in shared(s3, 2) if key != "derivatives/notes.txt"]
    for width in range(100, 140):
        assert fetch(api, f"{url}?width={width}").status == 200
        if width % 10 == 0:
            renew(api, s3, f"{url}?width=60", key)
    assert fetch(api, f"{url}?width=60").raw == first.raw
    until(lambda: 0 < bytes_in(s3) - 2 * most <= most)  # without the notes
    assert key in images_in(s3)
    assert s3.objects().keys() >= {*originals, "derivatives/notes.txt"}


def test_images_in_use_are_kept_up_to_twice_the_limit(api: Api, s3: S3) -> None:
    configure(api, s3, serve="sign")
    most = 10_000
    text = (api.root / "site.yaml").read_text()
    (api.root / "site.yaml").write_text(text.replace("roles:", f"  transform: {{cache: {most}}}\nroles:"))
    api.site.refresh()
    url, made, width = image(api)["url"], 0, 100
    while made < 1.8 * most:
        made += len(followed(s3, fetch(api, f"{url}?width={width}")))
        width += 1
    assert bytes_in(s3) == made
    while made < 2.4 * most:
        answer = fetch(api, f"{url}?width={width}")
        made += len(followed(s3, answer))
        width += 1
    until(lambda: bytes_in(s3) <= 2.1 * most)
    assert bytes_in(s3) > most


def bytes_in(s3: S3) -> int:
    """Return the size of all transformed images, some of which may be deleted meanwhile."""
    return sum(one["size"] for chunk in obstore.list(s3.store, "derivatives") for one in chunk)


def renew(api: Api, s3: S3, url: str, key: str) -> None:
    """Use an image until the time of its last change is another second."""
    before = modified(s3, key)
    until(lambda: fetch(api, url).status == 200 and modified(s3, key) > before)


def modified(s3: S3, key: str) -> datetime:
    """Return the time at which an object was last changed, which S3 knows in seconds."""
    return obstore.head(s3.store, key)["last_modified"]


def images_in(s3: S3) -> dict[str, bytes]:
    return {key: data for key, data in derivatives(s3).items() if not key.endswith(".txt")}


def test_evicted_images_are_made_again_for_concurrent_readers(api: Api, s3: S3) -> None:
    lines = site_of(s3)["site.yaml"].replace(
        "roles:", "  transform: {cache: 2000, per_minute: 100000}\nroles:"
    )
    (api.root / "site.yaml").write_text(lines)
    api.site.refresh()
    url = image(api)["url"]
    expected = {width: fetch(api, f"{url}?width={width}").raw for width in range(40, 52)}
    with ThreadPoolExecutor(6) as pool:
        answers = [*pool.map(lambda width: (width, fetch(api, f"{url}?width={width}")), [*expected] * 6)]
    assert all(answer.status == 200 and answer.raw == expected[width] for width, answer in answers)


# --- a bucket that does not respond ---------------------------------------------------------------


def test_a_bucket_that_hangs_delays_only_images_that_need_it(api: Api, s3: S3) -> None:
    file, other = image(api), image(api, 500, 300)
    cached = fetch(api, f"{file['url']}?width=100")
    write(api.root, {"content/uploads/disk.png": picture(60, 40)})
    api.site.refresh()
    stored = other["provider_metadata"]["sha256"]
    for copy in (api.root / ".bifolio/media").glob(f"{stored[:2]}/{stored}*"):
        copy.unlink()
    with s3.stopped(), ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(fetch, api, f"{other['url']}?width={width}") for width in range(30, 38)]
        assert fetch(api, f"{file['url']}?width=100").raw == cached.raw
        assert fetch(api, "/uploads/disk.png?width=20").status == 200
        assert fetch(api, f"{file['url']}?width=90").status == 200  # The original is on this machine.
        assert len(api.get("/api/posts").data) == 1
        refused = [future.result(30) for future in slow]
    assert {answer.status for answer in refused} == {503}
    assert all(int(answer.headers["Retry-After"]) > 0 for answer in refused)
    assert fetch(api, f"{other['url']}?width=30").status == 200


@pytest.mark.parametrize("mode", MODES)
def test_a_server_sends_its_own_copy_while_the_bucket_hangs(
    api: Api, s3: S3, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_images, "CHECK_TTL_S", 0.0)
    configure(api, s3, **MODES[mode])
    url = f"{image(api)['url']}?width=100"
    good = followed(s3, fetch(api, url))
    with s3.stopped():
        answer = fetch(api, url)
    assert (answer.status, answer.raw) == (200, good)
    assert followed(s3, fetch(api, url)) == good


def test_an_original_that_takes_too_long_is_found_by_a_later_request(
    tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "REQUEST_TIMEOUT_S", 30)
    monkeypatch.setattr(uploads, "DOWNLOAD_TIMEOUT_S", 1.5)
    api = make(tmp_path, site_of(s3))
    url = f"{image(api)['url']}?width=100"
    shutil.rmtree(tmp_path / ".bifolio/media")
    with s3.stopped():
        answer = fetch(api, url)
        assert (answer.status, answer.headers["Retry-After"]) == (503, "5")
    until(lambda: [*(tmp_path / ".bifolio/images").glob("*/*.png")] != [])
    assert fetch(api, url).status == 200
    api.accounts.close()
