"""Tests of media in a bucket over HTTP: uploads, their responses, and an unreachable bucket."""

import hashlib
import io
import os
import threading
import time
from pathlib import Path
from typing import Any

import obstore
import pytest
import yaml
from PIL import Image

from server.site.check.audit import Audit
from server.site.check.unclaimed import find_unclaimed
from server.storage.bucket import bucket as buckets
from server.storage.bucket import site_bucket
from server.storage.parse_cache import pack, unpack
from server.write.renaming.rename import RenameRequest, rename
from tests.buckets import S3
from tests.git import commit_all, git
from tests.sites import Answer, Api, load, make, schema, write, write_to
from tests.waiting import until

POST = schema("post", {"title": "string", "cover": {"type": "media"}})
PAGE = b"<script>alert(1)</script>"


def picture(width: int = 600, height: int = 400) -> bytes:
    out = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(out, "PNG")
    return out.getvalue()


def site_of(s3: S3, **media: str) -> dict[str, str]:
    roles = "roles:\n  public: {upload: [find], post: [find]}\n"
    return {
        "content-types/post.json": POST,
        "site.yaml": s3.settings(**media) + roles,
        "content/posts/one.md": "---\ntitle: One\n---\n",
    }


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set short timeouts for a bucket, without retries or a pause after a failure."""
    monkeypatch.setattr(buckets, "BACKOFF_S", 0.0)
    monkeypatch.setattr(buckets, "REQUEST_TIMEOUT_S", 4)
    monkeypatch.setattr(buckets, "MAX_RETRIES", 0)


@pytest.fixture
def api(tmp_path: Path, s3: S3) -> Api:
    return make(tmp_path, site_of(s3))


def upload(api: Api, *files: tuple[bytes, str], query: str = "", **fields: str) -> Any:
    data: dict[str, Any] = dict(fields)
    data["files"] = [(io.BytesIO(content), name) for content, name in files]
    return api.ask("POST", f"/api/upload{query}", data=data, content_type="multipart/form-data")


def fetch(api: Api, url: str, **headers: str) -> Answer:
    return api.ask("GET", url, "public", headers=headers)


def described(api: Api, file: Any) -> Any:
    path = api.site.root / "content" / f"{file['url'].strip('/')}.yaml"
    return yaml.safe_load(path.read_text())


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_an_upload_is_in_the_bucket_and_its_description_names_the_hash(api: Api, s3: S3) -> None:
    content = picture()
    file = upload(api, (content, "Bay.PNG"), fileInfo='{"caption": "The bay"}').body[0]
    assert list((api.site.root / "content/uploads").iterdir()) == [
        api.site.root / "content" / f"{file['url'].strip('/')}.yaml"
    ]
    said = described(api, file)["file"]
    assert (said["sha256"], said["size"], said["width"], said["height"]) == (
        sha256(content),
        len(content),
        600,
        400,
    )
    held = s3.objects()
    assert held[f"{sha256(content)[:2]}/{sha256(content)}.png"] == content
    assert all(sha256(data) == key[3:67] for key, data in held.items())
    assert (file["width"], file["height"], file["caption"], file["mime"]) == (
        600,
        400,
        "The bay",
        "image/png",
    )
    assert list(file["formats"]) == list(said["formats"]) == ["thumbnail", "small"]
    assert fetch(api, file["url"]).raw == content
    for name, one in file["formats"].items():
        data = fetch(api, one["url"]).raw
        assert (len(data), Image.open(io.BytesIO(data)).width) == (one["sizeInBytes"], one["width"])
        assert sha256(data) == said["formats"][name]["sha256"]


def test_a_file_of_the_bucket_is_a_file_like_others(api: Api) -> None:
    file = upload(api, (picture(), "a.png"), ref="api::post.post", refId="one", field="cover").body[0]
    assert api.get("/api/posts/one?populate=cover").data["cover"]["url"] == file["url"]
    assert upload(
        api, query=f"?id={file['id']}", fileInfo='{"caption": "Low", "focalPoint": {"x": 1, "y": 2}}'
    )
    cover = api.get("/api/posts?filters[cover][caption]=Low&populate=cover").data[0]["cover"]
    assert (cover["caption"], cover["focalPoint"]) == ("Low", {"x": 1, "y": 2})
    assert api.ask("DELETE", f"/api/upload/files/{file['id']}").status == 200
    assert api.get("/api/posts/one?populate=cover").data["cover"] is None
    assert fetch(api, file["url"]).status == 404
    assert not [*(api.site.root / "content/uploads").iterdir()]


def test_other_content_has_another_hash_and_the_same_address(api: Api, s3: S3) -> None:
    file = upload(api, (b"first", "a.txt")).body[0]
    before = fetch(api, file["url"])
    changed = upload(api, (b"second", "b.txt"), query=f"?id={file['id']}").body
    assert (changed["url"], changed["documentId"]) == (file["url"], file["documentId"])
    after = fetch(api, file["url"])
    assert (before.raw, after.raw) == (b"first", b"second")
    assert before.headers["ETag"] != after.headers["ETag"]
    assert sorted(s3.objects().values()) == [b"first", b"second"]
    assert upload(api, (picture(), "c.png"), query=f"?id={file['id']}").status == 400


def test_the_same_content_is_there_once(api: Api, s3: S3) -> None:
    first, second = upload(api, (b"same", "a.txt"), (b"same", "b.txt")).body
    assert first["url"] != second["url"]
    assert list(s3.objects().values()) == [b"same"]


def test_deleting_and_replacing_can_be_undone(api: Api) -> None:
    first, second = picture(), picture(500)
    file = upload(api, (first, "bay.png")).body[0]
    prefer = {"Prefer": "undo"}
    form = {"data": {"files": [(io.BytesIO(second), "bay.png")]}, "content_type": "multipart/form-data"}
    replaced = api.ask("POST", f"/api/upload?id={file['id']}", headers=prefer, **form)
    assert fetch(api, file["url"]).raw == second
    deleted = api.ask("DELETE", f"/api/upload/files/{file['id']}", headers=prefer)
    assert fetch(api, file["url"]).status == 404
    for done, content in ((deleted, second), (replaced, first)):
        assert api.ask("POST", f"/batch/undo/{done.headers['Bifolio-Undo']}").status == 200
        assert fetch(api, file["url"]).raw == content


def test_parts_and_copies_that_clients_have(api: Api) -> None:
    url = upload(api, (b"0123456789", "a.txt")).body[0]["url"]
    part = fetch(api, url, Range="bytes=2-4")
    assert (part.status, part.raw, part.headers["Content-Range"]) == (206, b"234", "bytes 2-4/10")
    assert fetch(api, url, Range="bytes=20-").status == 416
    whole = fetch(api, url)
    assert fetch(api, url, **{"If-None-Match": whole.headers["ETag"]}).status == 304
    assert whole.headers["Content-Type"] == "text/plain; charset=utf-8"


def test_what_could_run_script_can_not(api: Api, s3: S3) -> None:
    files = upload(api, (PAGE, "a.html"), (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "b.svg")).body
    for file in files:
        assert "sandbox" in fetch(api, file["url"]).headers["Content-Security-Policy"]
    held = {s3.headers(key)["Content-Type"]: s3.headers(key) for key in s3.objects()}
    assert [headers["Content-Disposition"] for headers in held.values()] == ["attachment"] * 2
    picture_ = upload(api, (picture(), "c.png")).body[0]
    key = next(key for key in s3.objects() if sha256(fetch(api, picture_["url"]).raw) in key)
    assert "Content-Disposition" not in s3.headers(key)
    assert s3.headers(key)["Cache-Control"] == "public, max-age=31536000, immutable"


def test_a_public_bucket_is_redirected_to(tmp_path: Path, s3: S3) -> None:
    api = make(tmp_path, site_of(s3, public_url="https://media.example.org/site"))
    content = picture()
    file = upload(api, (content, "a.png")).body[0]
    found = fetch(api, file["url"])
    assert (found.status, found.headers["Cache-Control"]) == (302, "public, max-age=300")
    hash_ = sha256(content)
    assert found.headers["Location"] == f"https://media.example.org/site/{hash_[:2]}/{hash_}.png"
    small = fetch(api, file["formats"]["small"]["url"]).headers["Location"]
    assert small.removeprefix("https://media.example.org/site/") in s3.objects()


def test_a_private_bucket_can_be_signed_for(tmp_path: Path, s3: S3) -> None:
    api = make(tmp_path, site_of(s3, serve="sign"))
    file = upload(api, (b"text", "a.txt")).body[0]
    found = fetch(api, file["url"])
    assert (found.status, found.headers["Location"].startswith(f"{s3.url}/")) == (302, True)
    assert "X-Amz-Expires=900" in found.headers["Location"]
    assert s3.ask("GET", found.headers["Location"].removeprefix(s3.url)) == 200


def test_a_bucket_that_is_away(tmp_path: Path, s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_bucket, "CHECK_TTL_S", 0.0)
    api = make(tmp_path, site_of(s3))
    kept, other = upload(api, (b"one", "a.txt"), (b"two", "b.txt")).body
    for copy in (api.site.root / ".bifolio/media").glob("*/*"):
        copy.unlink()
    assert fetch(api, kept["url"]).raw == b"one"
    assert api.get("/_health/ready").data["media"] == "ready"
    before = api.files
    with s3.stopped():
        began = time.monotonic()
        refused = upload(api, (b"three", "c.txt"))
        assert (refused.status, refused.error["name"]) == (503, "ServiceUnavailableError")
        assert refused.headers["Retry-After"] == "5"
        assert fetch(api, other["url"]).status == 503
        assert api.get("/_health/ready").data["media"] == "away"
        assert time.monotonic() - began < 60
        assert fetch(api, kept["url"]).raw == b"one"  # This machine has a local copy of the file.
        assert len(api.get("/api/posts").data) == 1
        assert len(api.ask("GET", "/api/upload/files").body) == 2
    assert api.files == before
    assert upload(api, (b"three", "c.txt")).status == 201
    assert fetch(api, other["url"]).raw == b"two"
    assert api.get("/_health/ready").data["media"] == "ready"


def test_nobody_who_asks_for_the_health_waits_for_a_bucket_that_hangs(
    api: Api, s3: S3, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "REQUEST_TIMEOUT_S", 15)
    threads = threading.active_count()
    with s3.stopped():
        for _ in range(3):
            began = time.monotonic()
            assert api.get("/_health/ready").data["media"] == "away"
            assert time.monotonic() - began < 8
        assert threading.active_count() <= threads + 1
    until(lambda: api.get("/_health/ready").data["media"] == "ready", seconds=30)


def test_a_bucket_that_is_not_there(tmp_path: Path, s3: S3) -> None:
    files = site_of(s3)
    files["site.yaml"] = files["site.yaml"].replace("media-of-tests", "no-such-bucket")
    api = make(tmp_path, files)
    refused = upload(api, (b"one", "a.txt"))
    assert (refused.status, refused.error["message"]) == (503, "The media bucket does not exist")
    assert api.get("/_health/ready").data["media"] == "away"


def test_a_damaged_or_missing_object_is_not_served(api: Api, s3: S3) -> None:
    file = upload(api, (b"good", "a.txt")).body[0]
    [key] = s3.objects()
    for copy in (api.site.root / ".bifolio/media").glob("*/*"):
        copy.unlink()
    for content in (b"evil", b"", b"go", b"good and more"):
        obstore.put(s3.store, key, content)
        damaged = fetch(api, file["url"])
        assert (damaged.status, damaged.error["message"]) == (502, "The media file is damaged in the bucket")
    obstore.delete(s3.store, key)
    missing = fetch(api, file["url"])
    assert (missing.status, missing.error["message"]) == (502, "The media file is missing from the bucket")
    assert missing.headers["Cache-Control"] == "no-store"
    assert not [*(api.site.root / ".bifolio/media").glob("*/*")]


def test_files_on_disk_and_in_the_bucket(tmp_path: Path, s3: S3) -> None:
    files: dict[str, str | bytes] = {**site_of(s3), "content/uploads/old.txt": b"on disk"}
    api = make(tmp_path, files)
    upload(api, (b"in the bucket", "new.txt"))
    found = api.ask("GET", "/api/upload/files?sort=name").body
    assert [fetch(api, file["url"]).raw for file in found] == [b"in the bucket", b"on disk"]
    old = next(file for file in found if file["name"] == "old.txt")
    changed = upload(api, (b"moved", "old.txt"), query=f"?id={old['id']}").body
    assert (changed["url"], changed["documentId"]) == (old["url"], old["documentId"])
    assert not (api.site.root / "content/uploads/old.txt").exists()
    assert fetch(api, old["url"]).raw == b"moved"
    (api.site.root / "content/uploads/old.txt").write_bytes(b"by hand")
    api.site.refresh()
    assert fetch(api, old["url"]).raw == b"by hand"
    assert len(api.ask("GET", "/api/upload/files").body) == 2


def test_two_machines(tmp_path: Path, s3: S3) -> None:
    one, other = (make(tmp_path / name, site_of(s3)) for name in ("one", "other"))
    content = picture()
    file = upload(one, (content, "a.png")).body[0]
    description = f"content{file['url']}.yaml"
    (other.site.root / "content/uploads").mkdir()
    (other.site.root / description).write_bytes((one.site.root / description).read_bytes())
    other.site.refresh()
    again = other.ask("GET", "/api/upload/files").body[0]
    shown = {**again, "createdAt": file["createdAt"], "updatedAt": file["updatedAt"]}
    assert shown == {**file, "isUrlSigned": again.get("isUrlSigned")} or shown == file
    first, second = fetch(one, file["url"]), fetch(other, file["url"])
    assert (first.raw, first.headers["ETag"]) == (second.raw, second.headers["ETag"])
    small = file["formats"]["small"]["url"]
    assert fetch(one, small).raw == fetch(other, small).raw


def test_any_commit_finds_its_files(tmp_path: Path, s3: S3) -> None:
    files = {**site_of(s3), "content/uploads/old.txt": b"on disk"}
    files["site.yaml"] = str(files["site.yaml"]) + "git: {commit: each}\n"
    write(tmp_path, files)
    commit_all(tmp_path)
    api = make(tmp_path, {})
    url = upload(api, (picture(), "a.png")).body[0]["url"]
    id_ = api.ask("GET", "/api/upload/files?filters[name]=a.png").body[0]["id"]
    first = fetch(api, url).raw
    before = git(tmp_path, "rev-parse", "HEAD").strip()
    upload(api, (picture(900, 300), "a.png"), query=f"?id={id_}")
    replaced = git(tmp_path, "rev-parse", "HEAD").strip()
    assert api.ask("DELETE", f"/api/upload/files/{id_}").status == 200
    assert fetch(api, url).status == 404
    assert api.ask("GET", f"{url}?at={before}").raw == first
    then = api.ask("GET", f"/api/upload/files?at={replaced}&filters[name]=a.png").body[0]
    assert (then["width"], list(then["formats"])) == (900, ["thumbnail", "small", "medium"])
    small = api.ask("GET", f"{then['formats']['small']['url']}?at={replaced}")
    assert Image.open(io.BytesIO(small.raw)).size == (500, 167)
    assert api.ask("GET", f"/uploads/old.txt?at={before}").raw == b"on disk"


def test_an_upload_to_a_branch(tmp_path: Path, s3: S3) -> None:
    write(tmp_path, site_of(s3))
    commit_all(tmp_path)
    git(tmp_path, "branch", "next")
    api = make(tmp_path, {})
    file = upload(api, (picture(), "a.png"), query="?branch=next").body[0]
    assert list(file["formats"]) == ["thumbnail", "small"]
    assert fetch(api, file["url"]).status == 404
    assert api.ask("GET", f"{file['url']}?at=next").raw == picture()


def test_an_upload_of_a_branch_comes_with_its_merge(tmp_path: Path, s3: S3) -> None:
    files = site_of(s3)
    write(tmp_path, {**files, "site.yaml": files["site.yaml"] + "git: {commit: each}\n"})
    commit_all(tmp_path)
    git(tmp_path, "branch", "next")
    api = make(tmp_path, {})
    here = upload(api, (b"here", "b.txt")).body[0]
    there = upload(api, (picture(), "a.png"), query="?branch=next").body[0]
    assert api.ask("POST", "/branches/next/merge", json={}).status in (200, 201)
    assert fetch(api, there["url"]).raw == picture()
    assert fetch(api, here["url"]).raw == b"here"
    assert len(api.ask("GET", "/api/upload/files").body) == 2


def test_what_is_kept_for_the_next_start(tmp_path: Path, s3: S3) -> None:
    api = make(tmp_path, site_of(s3))
    file = upload(api, (picture(), "a.png")).body[0]
    path = f"content{file['url']}.yaml"
    # With an old timestamp, an unchanged signature proves that the file is unchanged.
    os.utime(tmp_path / path, (1e9, 1e9))
    for _ in range(3):
        again = load(tmp_path, {})
        [found] = again.state.snapshot.media.values()
        assert (f"{found.path}.yaml", found.get("width")) == (path, 600)
        assert found.get("provider_metadata")["sha256"] == sha256(picture())
        assert not again.problems
    [packed] = unpack(pack([again.basis()[3][path]]), again.state.schema.types)
    assert (packed.path, packed.document and packed.document.path) == (path, found.path)


def test_a_renamed_file_keeps_its_object(api: Api, s3: S3) -> None:
    url = upload(api, (b"text", "a.txt"), ref="api::post.post", refId="one", field="cover").body[0]["url"]
    write_to(api.site, rename, RenameRequest(f"content{url}", "content/uploads/b.txt"))
    assert fetch(api, "/uploads/b.txt").raw == b"text"
    assert fetch(api, url).status == 404
    assert api.get("/api/posts/one?populate=cover").data["cover"]["url"] == "/uploads/b.txt"
    assert list(s3.objects().values()) == [b"text"]
    assert not [*find_unclaimed(Audit(api.site.root, api.site.state.settings, api.site.state.snapshot))]


def test_a_site_that_has_a_bucket_no_more(tmp_path: Path, s3: S3) -> None:
    api = make(tmp_path, site_of(s3))
    file = upload(api, (b"one", "a.txt")).body[0]
    (tmp_path / "site.yaml").write_text("roles:\n  public: {upload: [find]}\n")
    api.site.refresh()
    assert fetch(api, file["url"]).status == 503
    changed = upload(api, (b"two", "a.txt"), query=f"?id={file['id']}").body
    assert fetch(api, changed["url"]).raw == b"two"
    assert "file" not in described(api, file)


@pytest.mark.parametrize(
    "line",
    [
        "sha256: 12",
        "sha256: ../../../../etc/passwd",
        "sha256: " + "a" * 64 + "\n  ext: /../x\n  size: 4",
        "sha256: " + "a" * 64 + "\n  size: many",
        "sha256: " + "a" * 64 + "\n  size: 4\n  formats: [1]",
        "sha256: " + "a" * 64 + "\n  size: 4\n  formats: {small: 5}",
    ],
)
def test_a_description_that_is_wrong_is_a_problem(tmp_path: Path, s3: S3, line: str) -> None:
    api = make(tmp_path, {**site_of(s3), "content/uploads/a.txt.yaml": f"name: A\nfile:\n  {line}\n"})
    assert [p.severity for p in api.site.problems if p.path == "content/uploads/a.txt.yaml"] == ["error"]
    assert fetch(api, "/uploads/a.txt").status == 404
    assert fetch(api, "/uploads/a.txt.yaml").status == 404
