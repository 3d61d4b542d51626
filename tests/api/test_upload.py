"""Tests of media over HTTP: uploading, describing, scaling, serving and deleting files."""

import fcntl
import hashlib
import io
import json
import os
import re
import resource
import sys
import time
import zlib
from io import BufferedReader
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from PIL import Image

from server.errors import NotFoundError
from server.jobs.job import Timing
from server.jobs.runner import Runner
from server.site.background.jobs import ResizeImages
from server.site.site import Site
from server.storage.images import cache, variants
from server.storage.images.kinds import ImageSize
from server.storage.images.measure import MAX_READS, measure
from server.storage.write_lock import WriteLock
from server.write.context import Context
from server.write.uploads import uploading
from tests.sites import Api, make, schema, write, write_to
from tests.waiting import computing_less_than, until

POST = schema(
    "post",
    {
        "title": "string",
        "cover": {"type": "media", "allowedTypes": ["images"]},
        "pictures": {"type": "media", "multiple": True},
    },
    drafts=True,
)
FILES: dict[str, str | bytes] = {
    "content-types/post.json": POST,
    "site.yaml": "api: {upload_limit: 300 kB}\nroles:\n  public: {upload: [find], post: [find]}\n",
    "content/posts/one.md": "---\ntitle: One\n---\n",
}


def picture(width: int = 600, height: int = 400, kind: str = "PNG") -> bytes:
    out = io.BytesIO()
    Image.linear_gradient("L").resize((width, height)).convert("RGB").save(out, kind)
    return out.getvalue()


@pytest.fixture
def api(tmp_path: Path) -> Api:
    return make(tmp_path, FILES)


def upload(api: Api, *files: tuple[bytes, str], query: str = "", **fields: str | list[str]) -> Any:
    data: dict[str, Any] = dict(fields)
    data["files"] = [(io.BytesIO(content), name) for content, name in files]
    return api.ask("POST", f"/api/upload{query}", data=data, content_type="multipart/form-data")


def fetch(api: Api, url: str, **headers: str) -> Any:
    """Send a GET request without credentials."""
    return api.get(url, "public", headers=headers)


def test_a_picture_gets_formats_and_is_served_in_all_of_them(api: Api) -> None:
    file = upload(api, (picture(), "sea side.png"), fileInfo='{"alternativeText": "Waves"}').body[0]
    assert (file["width"], file["height"], file["mime"]) == (600, 400, "image/png")
    assert sorted(file["formats"]) == ["small", "thumbnail"]
    assert (file["formats"]["thumbnail"]["width"], file["formats"]["thumbnail"]["height"]) == (234, 156)
    for url in (file["url"], file["formats"]["small"]["url"]):
        answer = fetch(api, url)
        assert (answer.status, answer.headers["Content-Type"]) == (200, "image/png")
    small = Image.open(io.BytesIO(fetch(api, file["formats"]["small"]["url"]).raw))
    assert small.size == (500, 333)
    described = api.read(f"content{file['url']}.yaml")
    assert "alternativeText: Waves\n" in described


def test_a_file_is_described_attached_and_deleted(api: Api) -> None:
    file = upload(api, (picture(), "a.png")).body[0]
    assert api.put("/api/posts/one", {"cover": file["id"], "pictures": [file["documentId"]]}).status == 200
    changed = upload(api, query=f"?id={file['id']}", fileInfo='{"caption": "The bay"}').body
    assert (changed["caption"], changed["name"]) == ("The bay", "a.png")
    post = api.get("/api/posts/one?populate=*").data
    assert post["cover"]["caption"] == post["pictures"][0]["caption"] == "The bay"
    assert api.get("/api/posts?filters[cover][caption][$contains]=bay").data[0]["title"] == "One"
    assert api.ask("DELETE", f"/api/upload/files/{file['id']}").body["id"] == file["id"]
    assert api.files == {"posts/one.md"}
    assert api.get("/api/posts/one?populate=*").data["cover"] is None
    assert fetch(api, file["url"]).status == 404


def test_the_types_that_a_media_attribute_allows_are_told_not_enforced(api: Api) -> None:
    text, image = upload(api, (b"text", "a.txt"), (picture(), "b.png")).body
    for file in (text, image):
        cover = api.put("/api/posts/one?populate=cover", {"cover": file["id"]}).data["cover"]
        assert cover["name"] == file["name"]


def test_each_file_has_a_description(api: Api) -> None:
    two = ((b"one", "a.txt"), (b"two", "b.txt"))
    infos = ['{"name": "A", "nope": 1}', '{"caption": 5, "focalPoint": {"x": 0.5, "y": 100}}']
    for sent in (infos, f"[{','.join(infos)}]"):
        first, second = upload(api, *two, fileInfo=sent).body
        assert (first["name"], first["caption"], first["isUrlSigned"]) == ("A", None, False)
        assert (second["name"], second["caption"]) == ("b.txt", "5")
        assert second["focalPoint"] == {"x": 0.5, "y": 100}
    for sent in ('{"name": "A"}', '[{"name": "A"}]', "[{}, {}"):
        assert upload(api, *two, fileInfo=sent).status == 400
    assert upload(api, two[0], fileInfo=infos).status == 400


@pytest.mark.parametrize("control", ["\n", "\r\n", "\t", "\x00", "\x1b", "\x7f", "\x85", "\u2028"])
def test_the_name_of_a_file_has_no_control_characters(api: Api, control: str) -> None:
    info = json.dumps({"name": f"x{control}Set-Cookie: a.txt"})
    before = api.files
    for query in ("", f"?id={upload(api, (b'text', 'a.txt')).body[0]['documentId']}"):
        files = () if query else ((b"text", "b.txt"),)
        refused = upload(api, *files, query=query, fileInfo=info)
        assert refused.status == 400
        assert refused.error["details"]["errors"][0]["path"] == ["fileInfo", "name"]
    assert not any("Set-Cookie" in api.read(f"content/{path}") for path in api.files - before)
    # A description file can contain any name, so it must be possible to say which name is to be replaced.
    key = upload(api, (b"text", "c.txt")).body[0]["documentId"]
    previous = json.dumps({"name": "c\nd.txt"})
    assert upload(api, query=f"?id={key}", fileInfo='{"name": "d.txt"}', previous=previous).status == 412


def test_a_description_is_changed_only_if_it_still_has_the_previous_values(api: Api) -> None:
    file = upload(api, (b"text", "a.txt"), fileInfo='{"alternativeText": "Fog"}').body[0]
    query, info = f"?id={file['id']}", '{"alternativeText": "Mist"}'
    refused = upload(api, query=query, fileInfo=info, previous='{"alternativeText": "Rain", "caption": null}')
    assert refused.status == 412
    assert refused.error["details"] == {"current": {"alternativeText": "Fog", "caption": None}}
    for previous in ('{"alternativeText": "Fog", "caption": ""}', '{"alternativeText": "Mist"}'):
        assert upload(api, query=query, fileInfo=info, previous=previous).body["alternativeText"] == "Mist"
    for wrong in ("[]", "{", '{"focalPoint": 3}'):
        assert upload(api, query=query, fileInfo=info, previous=wrong).status == 400
    assert upload(api, (b"new", "a.txt"), query=query, previous='{"alternativeText": "Fog"}').status == 412
    assert fetch(api, file["url"]).raw == b"text"


def test_a_new_file_can_be_stored_in_a_folder_under_an_id_of_the_client(api: Api) -> None:
    id_ = "a1" * 12
    info = json.dumps({"folder": "/ships/2024/", "documentId": id_, "name": "Ferry.txt"})
    file = upload(api, (b"text", "f.txt"), fileInfo=info).body[0]
    assert re.fullmatch(r"/uploads/ships/2024/Ferry_[0-9a-f]{10}\.txt", file["url"])
    assert (file["documentId"], api.read(f"content{file['url']}")) == (id_, "text")
    assert "folder" not in api.read(f"content{file['url']}.yaml")
    again = upload(api, (b"text", "f.txt"), fileInfo=info)
    assert again.status == 409
    assert id_ in again.error["message"]
    twice = json.dumps([{"documentId": "b" * 24}, {"documentId": "b" * 24}])
    assert upload(api, (b"1", "1.txt"), (b"2", "2.txt"), fileInfo=twice).status == 409
    assert len(api.get("/api/upload/files").body) == 1
    for wrong in ({"folder": "../x"}, {"folder": "a//b"}, {"folder": ".git"}, {"documentId": "short"}):
        assert upload(api, (b"text", "f.txt"), fileInfo=json.dumps(wrong)).status == 400
    assert upload(api, (b"text", "f.txt"), fileInfo='{"folder": 3}').status == 201  # of a client of Strapi
    same = upload(api, query=f"?id={id_}", fileInfo='{"folder": 3, "documentId": "x"}').body
    assert (same["url"], same["documentId"]) == (file["url"], id_)
    moved = upload(api, query=f"?id={id_}", fileInfo='{"folder": "x"}')
    assert (moved.status, "use POST /api/upload/files/ID/move" in moved.error["message"]) == (400, True)


@pytest.mark.parametrize(
    "folder",
    ["CON", "nul", "a/COM1.png", "aux.d/x", "a:b", "a\\b", "ships.", "ships /x", " ships", "a*"],
)
def test_a_folder_has_a_name_that_every_system_allows(api: Api, folder: str) -> None:
    answer = upload(api, (b"text", "f.txt"), fileInfo=json.dumps({"folder": folder}))
    assert (answer.status, "must be the path of a folder" in answer.error["message"]) == (400, True)


def test_a_file_is_not_moved_to_a_folder_that_differs_only_in_case(api: Api) -> None:
    nfc, nfd = "Caf\u00e9", "Cafe\u0301"
    ids = [upload(api, (b"text", name)).body[0]["documentId"] for name in ("a.txt", "b.txt")]

    def move(id_: str, folder: str) -> Any:
        return api.ask("POST", f"/api/upload/files/{id_}/move", json={"folder": folder})

    assert move(ids[0], f"Shelf/{nfc}").status == 200
    refused = move(ids[1], "shelf")
    assert (refused.status, 'use "Shelf"' in refused.error["message"]) == (409, True)
    moved = move(ids[1], f"Shelf/{nfd}")
    assert moved.status == 200, moved.body
    assert len([folder for folder in (api.root / "content/uploads/Shelf").iterdir() if folder.is_dir()]) == 1
    assert move(ids[1], "").status == 200
    assert move(ids[0], f"shelf/{nfc}").status == 200  # No other file is in the old folder.


def test_folders_differ_in_more_than_case(api: Api) -> None:
    """On file systems that ignore case, or that store names in another Unicode form, they would be one."""
    nfc, nfd = "Caf\u00e9", "Cafe\u0301"
    for folder, status, stored in (
        ("Ships/Old", 201, "Ships/Old"),
        ("ships", 409, ""),
        ("Ships/old/1", 409, ""),
        ("Ships/New", 201, "Ships/New"),
        (nfd, 201, nfc),
        (nfc, 201, nfc),
    ):
        answer = upload(api, (b"text", "f.txt"), fileInfo=json.dumps({"folder": folder}))
        assert answer.status == status, folder
        if stored:
            assert unquote(answer.body[0]["url"]).startswith(f"/uploads/{stored}/f_")
    both = [json.dumps({"folder": folder}) for folder in ("Port", "port")]
    answer = upload(api, (b"a", "a.txt"), (b"b", "b.txt"), fileInfo=f"[{','.join(both)}]")
    assert answer.status == 409


@pytest.mark.parametrize(
    ("info", "path"),
    [
        ("5", []),
        ('{"name": {}}', ["name"]),
        ('{"caption": "a\\u0000b"}', ["caption"]),
        ('{"focalPoint": {"x": 101, "y": 2}}', ["focalPoint", "x"]),
        ('{"focalPoint": {"x": 1}}', ["focalPoint", "y"]),
        ('{"focalPoint": {"x": true, "y": 1}}', ["focalPoint", "x"]),
        (f'{{"focalPoint": {{"x": 1, "y": {10**400}}}}}', ["focalPoint", "y"]),
        ('{"focalPoint": {"x": 1e999, "y": 0}}', ["focalPoint", "x"]),
        ('{"focalPoint": 5}', ["focalPoint"]),
    ],
)
def test_a_wrong_description_is_refused_by_its_path(api: Api, info: str, path: list[str]) -> None:
    one = upload(api, (b"one", "a.txt"), fileInfo=info)
    assert (one.status, one.body["error"]["details"]["errors"][0]["path"]) == (400, ["fileInfo", *path])
    two = upload(api, (b"one", "a.txt"), (b"two", "b.txt"), fileInfo=f"[{{}}, {info}]")
    assert two.body["error"]["details"]["errors"][0]["path"] == ["fileInfo", "1", *path]
    assert api.files == {"posts/one.md"}


def test_an_empty_file_is_none(api: Api) -> None:
    assert upload(api, (b"", "a.txt")).body["error"]["message"] == "Files are empty"
    file = upload(api, (b"", "a.txt"), (b"two", "b.txt")).body[1]
    changed = upload(api, (b"", "c.txt"), query=f"?id={file['id']}", fileInfo='{"caption": "C"}').body
    assert (changed["name"], changed["caption"]) == ("b.txt", "C")
    assert fetch(api, file["url"]).raw == b"two"


def test_a_file_that_is_replaced_keeps_its_url(api: Api) -> None:
    file = upload(
        api, (picture(), "a.png"), fileInfo='{"caption": "C", "focalPoint": {"x": 1, "y": 2}}'
    ).body[0]
    query = f"?id={file['id']}"
    found = upload(api, (picture(30, 20), "small.png"), query=query).body
    assert (found["url"], found["name"], found["caption"]) == (file["url"], "small.png", "C")
    assert (found["width"], found["focalPoint"], found["formats"]) == (30, None, {})
    found = upload(api, (picture(), "b.png"), query=query, fileInfo='{"name": "Large"}').body
    assert (found["name"], sorted(found["formats"])) == ("Large", ["small", "thumbnail"])
    several = upload(api, (picture(), "b.png"), (picture(), "c.png"), query=query)
    assert several.body["error"]["message"] == "Cannot replace a file with multiple ones"
    assert upload(api, (b"text", "b.txt"), query=query).status == 400
    assert upload(api, query="?id[0]=1", fileInfo="{}").status == 400


def test_an_upload_beside_an_edit_of_its_description_is_prepared_again(api: Api, tmp_path: Path) -> None:
    file = upload(api, (picture(), "a.png")).body[0]
    content = api.root / f"content{file['url']}"
    description = Path(f"{content}.yaml")
    source = tmp_path / "incoming"
    source.write_bytes(picture(30, 20))
    change = uploading.FileChange(str(file["id"]), {}, uploading.ReceivedFile(source, "small.png", {}))
    edits = iter(["# by hand\n"])

    def prepare(request: uploading.FileChange, context: Context) -> str:
        path = uploading.change_file(request, context)
        with description.open("a") as text:
            text.write(next(edits, ""))
        return path

    write_to(api.site, prepare, change)
    assert "name: small.png\n" in description.read_text()
    assert "# by hand\n" in description.read_text()
    assert content.read_bytes() == picture(30, 20)


def test_a_description_that_is_no_yaml_is_not_changed(api: Api) -> None:
    (api.root / "content/uploads").mkdir(parents=True, exist_ok=True)
    (api.root / "content/uploads/a.png").write_bytes(picture())
    description = api.root / "content/uploads/a.png.yaml"
    description.write_text("name: [a\n")
    api.site.refresh()
    file = api.get("/api/upload/files").body[0]
    for files in ((), ((picture(), "b.png"),)):
        answer = upload(api, *files, query=f"?id={file['id']}", fileInfo='{"caption": "C"}')
        assert answer.status == 409
        assert answer.body["error"]["message"].startswith("content/uploads/a.png.yaml, line ")
        assert description.read_text() == "name: [a\n"


def test_a_name_is_no_longer_than_others(api: Api) -> None:
    file = upload(api, (b"text", "a" * 60_000 + ".txt")).body[0]
    assert file["name"] == "a" * 251 + ".txt"
    assert len(upload(api, (b"text", "a." + "t" * 60_000)).body[0]["name"]) == 255
    assert upload(api, (b"text", "a.txt"), fileInfo=json.dumps({"name": "é" * 255})).status == 201
    refused = upload(api, (b"text", "a.txt"), fileInfo=json.dumps({"name": "é" * 256})).body["error"]
    assert refused["details"]["errors"][0]["path"] == ["fileInfo", "name"]


def test_a_name_keeps_what_is_no_ending(api: Api) -> None:
    names = {"b.png": "b_png_", "b.txt": "b_", "a/b.TXT": "b_TXT_", "": "two_dots_"}
    for name, stem in names.items():
        file = upload(api, (b"text", "two.dots.txt"), fileInfo=json.dumps({"name": name})).body[0]
        assert re.fullmatch(rf"{stem}[0-9a-f]{{10}}", file["hash"]), file
        assert file["ext"] == ".txt"


def test_sizes_are_rounded_as_strapi_rounds(api: Api) -> None:
    files = [upload(api, (b"x" * size, "a.bin")).body[0] for size in (1, 14, 15, 125, 1005)]
    assert [file["size"] for file in files] == [0, 0.01, 0.02, 0.13, 1.01]


def test_a_drawing_has_a_size_and_no_formats(api: Api) -> None:
    svg = b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1200 800"/>'
    file = upload(api, (svg, "d.svg")).body[0]
    assert (file["width"], file["height"], file["formats"]) == (1200, 800, None)


def animation(count: int, width: int = 600, height: int = 400, **options: Any) -> bytes:
    out = io.BytesIO()
    frames = [Image.new("RGB", (width, height), (40 * n, 0, 255 - 40 * n)) for n in range(count)]
    frames[0].save(out, "GIF", save_all=True, append_images=frames[1:], **options)
    return out.getvalue()


def test_an_animation_keeps_its_frames(api: Api) -> None:
    file = upload(api, (animation(3, duration=[100, 200, 300], loop=0), "a.gif")).body[0]
    assert (sorted(file["formats"]), file["formats"]["small"]["mime"]) == (
        ["small", "thumbnail"],
        "image/gif",
    )
    small = Image.open(io.BytesIO(fetch(api, file["formats"]["thumbnail"]["url"]).raw))
    assert (small.size, getattr(small, "n_frames", 1), small.info["loop"]) == ((234, 156), 3, 0)
    durations, colours = [], []
    for n in range(3):
        small.seek(n)
        durations.append(small.info["duration"])
        colours.append(small.convert("RGB").getpixel((100, 100)))
    assert durations == [100, 200, 300]
    assert len(set(colours)) == 3


def test_an_animation_that_is_too_long_is_not_scaled(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "MAX_DECODED_PIXELS", 600 * 400 * 2)
    assert upload(api, (animation(2), "a.gif")).body[0]["formats"] is not None
    assert upload(api, (animation(3), "b.gif")).body[0]["formats"] is None


def test_a_tiff_has_formats(api: Api) -> None:
    file = upload(api, (picture(300, 200, "TIFF"), "a.tif")).body[0]
    assert file["formats"]["thumbnail"]["mime"] == "image/tiff"
    answer = fetch(api, file["formats"]["thumbnail"]["url"])
    assert answer.headers["Content-Type"] == "image/tiff"
    assert Image.open(io.BytesIO(answer.raw)).size == (234, 156)


def test_a_page_of_files_has_an_envelope(api: Api) -> None:
    upload(api, *((b"x", f"{name}.txt") for name in "abcde"))
    url = "/api/upload/files/page?sort=name&fields=name&pagination[page]=2&pagination[pageSize]=2"
    page = api.get(url, "public").body
    assert [(file["name"], file["isUrlSigned"]) for file in page["data"]] == [
        ("c.txt", False),
        ("d.txt", False),
    ]
    assert page["meta"] == {"pagination": {"page": 2, "pageSize": 2, "pageCount": 3, "total": 5}}
    url = "/api/upload/files/page?pagination[start]=1&pagination[limit]=1&pagination[withCount]=false"
    assert api.get(url).body["meta"] == {"pagination": {"start": 1, "limit": 1}}
    assert api.ask("OPTIONS", "/api/upload/files/page").headers["Allow"] == "GET, HEAD, OPTIONS"
    assert api.ask("DELETE", "/api/upload/files/page").status == 405
    assert api.get("/api/upload/files/page?page=2").body["error"]["name"] == "PaginationError"


def test_the_list_of_files_is_whole_but_for_start_and_limit(api: Api) -> None:
    upload(api, *((b"x", f"{name}.txt") for name in "abc"))
    for query in ("pagination[pageSize]=1", "pagination[page]=x", "page=2", "locale=fr", "status=nope"):
        assert len(api.get(f"/api/upload/files?{query}").body) == 3, query
    names = [file["name"] for file in api.get("/api/upload/files?sort=name&start=1&limit=1").body]
    assert names == ["b.txt"]
    for query in ("start=abc", "limit=x", "start=-1", "limit=1.5"):
        assert api.get(f"/api/upload/files?{query}").status == 400, query
    assert set(api.get("/api/upload/files?fields=id&limit=1").body[0]) == {"id", "documentId", "isUrlSigned"}
    for query in ("fields=nope", "filters[nope]=1", "sort=nope", "populate=folder", "filters[related]=1"):
        assert api.get(f"/api/upload/files?{query}").status == 400, query


def test_what_a_file_is_related_to(api: Api) -> None:
    a, b = upload(api, (picture(), "a.png"), (picture(), "b.png")).body
    api.put("/api/posts/one", {"cover": a["id"], "pictures": [a["id"], b["id"]]})
    api.post("/api/posts?status=draft", {"title": "Secret", "cover": b["id"]})
    (api.root / "content/posts/two.md").write_text(f"---\ntitle: Two\ncover: {b['url']}\n---\n")
    api.site.refresh()

    def related(query: str, who: str = "full") -> dict[str, Any]:
        files = api.get(f"/api/upload/files?sort=name&{query}", who).body
        return {file["name"]: [(d["__type"], d["title"]) for d in file["related"]] for file in files}

    one, two = ("api::post.post", "One"), ("api::post.post", "Two")
    assert related("populate=related") == related("populate=*", "public")
    assert related("populate=related") == {"a.png": [one], "b.png": [one, two]}
    only = "populate[related][on][api::post.post][filters][title]=Two"
    assert related(only) == {"a.png": [], "b.png": [two]}
    assert api.get(f"/api/upload/files/{a['id']}?populate=related").body["related"][0]["title"] == "One"
    cover = api.get("/api/posts/one?populate[cover][populate]=*").data["cover"]
    assert [document["title"] for document in cover["related"]] == ["One"]


def test_who_holds_a_file_in_a_private_attribute_is_not_told(tmp_path: Path) -> None:
    described = {"title": "string", "cover": {"type": "media"}, "proof": {"type": "media", "private": True}}
    api = make(
        tmp_path,
        {
            "content-types/post.json": schema("post", described),
            "content/posts/open.md": "---\ntitle: Open\ncover: /uploads/a.txt\n---\n",
            "content/posts/hidden.md": "---\ntitle: Hidden\nproof: /uploads/a.txt\n---\n",
            "content/uploads/a.txt": "a",
        },
    )
    (file,) = api.get("/api/upload/files?populate=related").body
    assert [document["title"] for document in file["related"]] == ["Open"]


def test_lists_of_files_are_bare_and_can_be_filtered(api: Api) -> None:
    upload(api, (picture(), "a.png"), (b"text", "b.txt"))
    assert [f["name"] for f in api.get("/api/upload/files?sort=name:desc", "public").body] == [
        "b.txt",
        "a.png",
    ]
    found = api.get("/api/upload/files?filters[mime][$startsWith]=image&fields=name").body
    assert [f["name"] for f in found] == ["a.png"]
    url = api.get("/api/upload/files").body[0]["url"]
    assert len(api.get(f"/api/upload/files?filters[url]={url}").body) == 1


@pytest.mark.parametrize(
    "name", ["../../etc/x.txt", "/etc/x.txt", "..\\x.txt", "a" * 400 + ".txt", "é 日本.txt", ".txt"]
)
def test_names_stay_in_the_folder(api: Api, name: str) -> None:
    file = upload(api, (b"text", name)).body[0]
    assert fetch(api, file["url"]).raw == b"text"
    assert {path.partition("/")[0] for path in api.files} == {"posts", "uploads"}
    assert all(len(path) < 130 for path in api.files)


def test_a_type_is_told_by_content_not_by_name(api: Api) -> None:
    file = upload(api, (picture(kind="JPEG"), "really.png")).body[0]
    assert (file["ext"], file["mime"]) == (".jpg", "image/jpeg")
    page = upload(api, (b"<script>alert(1)</script>", "page.html")).body[0]
    headers = fetch(api, page["url"]).headers
    assert "script-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_bomb_is_no_picture(api: Api) -> None:
    small = bytearray(picture(10, 10))
    small[16:24] = (60_000).to_bytes(4, "big") * 2  # a file header that claims 3.6 billion pixels
    file = upload(api, (bytes(small), "bomb.png")).body[0]
    assert (file["width"], file["formats"]) == (None, None)


def test_what_is_too_large_is_refused_and_leaves_nothing(api: Api) -> None:
    answer = upload(api, (b"x" * 400_000, "big.bin"))
    assert (answer.status, answer.body["error"]["status"]) == (413, 413)
    assert api.files == {"posts/one.md"}
    incoming = api.root / ".bifolio/incoming"
    assert not incoming.exists() or list(incoming.iterdir()) == []


def test_ranges_and_validators(api: Api) -> None:
    file = upload(api, (b"0123456789", "digits.txt")).body[0]
    part = fetch(api, file["url"], Range="bytes=2-4")
    assert (part.status, part.raw) == (206, b"234")
    whole = fetch(api, file["url"])
    again = fetch(api, file["url"], **{"If-None-Match": whole.headers["ETag"]})
    assert (again.status, again.raw) == (304, b"")


def test_a_picture_that_is_dropped_into_the_folder_appears(api: Api) -> None:
    uploads = api.root / "content/uploads"
    uploads.mkdir()
    (uploads / "dropped.png").write_bytes(picture(800, 300))
    (uploads / "dropped.png.yaml").write_text("alternativeText: By hand\n")
    api.site.refresh()
    file = api.get("/api/upload/files", "public").body[0]
    assert (file["name"], file["width"], file["alternativeText"]) == ("dropped.png", 800, "By hand")
    scaling = Runner([ResizeImages(api.site, Timing())])
    scaling.start()
    until(lambda: bool(api.get("/api/upload/files", "public").body[0]["formats"]))
    scaling.stop()
    formats = api.get("/api/upload/files", "public").body[0]["formats"]
    assert sorted(formats) == ["medium", "small", "thumbnail"]
    assert fetch(api, formats["thumbnail"]["url"]).status == 200


def test_formats_that_another_process_made_are_shown(api: Api) -> None:
    write(api.root, {"content/uploads/a.png": picture()})
    api.site.refresh()
    other = Site(api.root)
    other.load()
    other.scale("content/uploads/a.png")
    assert api.get("/api/upload/files").body[0]["formats"] is None
    for path in api.site.incomplete_images():
        api.site.scale(path)
    shown = api.get("/api/upload/files").body[0]["formats"]
    assert shown == other.state.snapshot.media["a.png"].get("formats")
    assert api.site.incomplete_images() == []


def test_who_may_do_what(api: Api) -> None:
    assert api.get("/api/upload/files", "public").status == 200
    assert api.get("/api/upload/files/1", "public").status == 403
    assert api.ask("POST", "/api/upload", "public").status == 403
    assert api.ask("DELETE", "/api/upload/files/1", "public").status == 403
    assert api.get("/api/upload/files/1").body["error"]["message"] == "file.notFound"


@pytest.mark.parametrize(("key", "path"), [("folderPath", "folderPath"), ("nope", None)])
@pytest.mark.parametrize("query", ["fields[0]={}", "filters[{}]=x"])
def test_an_error_names_the_attributes_of_files_that_are_not_shown(
    api: Api, query: str, key: str, path: str | None
) -> None:
    details = api.get(f"/api/upload/files?{query.format(key)}").body["error"]["details"]
    assert (details["key"], details["path"]) == (key, path)


def test_a_file_that_is_not_there_is_not_changed(api: Api) -> None:
    answer = api.ask("POST", "/api/upload?id=1", data={"fileInfo": "{}"})
    assert (answer.status, answer.body["error"]["message"]) == (404, "Entity not found")


def test_a_huge_picture_is_measured_by_its_header_and_scaled_by_another_process(api: Api) -> None:
    (api.root / "site.yaml").write_text("api: {upload_limit: 2 MB}\n")
    api.site.refresh()
    huge = picture(6000, 6000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    file = upload(api, (huge, "huge.png")).body[0]
    assert (file["width"], sorted(file["formats"])) == (6000, ["large", "medium", "small", "thumbnail"])
    # The decoded picture would occupy 144 MB, but this process has grown by less.
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 50
    assert sorted(path.name for path in (api.root / ".bifolio/formats").iterdir() if path.is_dir()) == [
        hashlib.sha256(huge).hexdigest()[:32]
    ]
    began = time.thread_time()
    with (api.root / f"content{file['url']}").open("rb") as sent:
        assert measure(sent, ".png") == ImageSize(6000, 6000)
    assert time.thread_time() - began < 0.05


def test_a_picture_that_takes_too_long_is_not_scaled(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "TIMEOUT_S", 0.001)
    file = upload(api, (picture(), "a.png")).body[0]
    assert (file["width"], file["formats"]) == (600, None)
    assert upload(api, (b"x", "b.txt")).status == 201


def test_a_picture_whose_process_is_killed_is_tried_again(
    api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    killed = tmp_path_factory.mktemp("bin") / "python"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o755)
    monkeypatch.setattr(cache, "BACKOFFS_S", (0.0, 0.0))
    with monkeypatch.context() as patched:
        patched.setattr(sys, "executable", str(killed))
        files = upload(api, (picture(), "a.png"), (picture(610), "b.png")).body
        assert [file["formats"] for file in files] == [None, None]
        paths = [f"content{file['url']}" for file in files]
        assert sorted(api.site.incomplete_images()) == sorted(paths)
        for _ in range(2):
            api.site.scale(paths[1])
        assert api.site.incomplete_images() == paths[:1]  # a picture that can't be scaled is not retried
    api.site.scale(paths[0])
    api.site.scale(paths[1])
    shown = {file["name"]: bool(file["formats"]) for file in api.get("/api/upload/files").body}
    assert shown == {"a.png": True, "b.png": False}
    again = Site(api.root)
    again.load()
    assert again.incomplete_images() == paths[1:]


def test_a_damaged_picture_is_tried_once(api: Api) -> None:
    file = upload(api, (picture()[:-200], "a.png")).body[0]
    assert (file["width"], file["formats"]) == (600, None)
    assert api.site.incomplete_images() == []
    api.site.image_cache.save()
    again = Site(api.root)
    again.load()
    assert again.incomplete_images() == []


def test_a_picture_that_has_to_wait_for_long_gets_its_formats_later(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(variants, "LOCK_TIMEOUT_S", 0.01)
    folder = api.root / ".bifolio/formats"
    folder.mkdir(parents=True)
    with WriteLock(folder / "lock", folder).held():
        file = upload(api, (picture(), "a.png")).body[0]
    assert (file["width"], file["formats"]) == (600, None)
    assert api.site.incomplete_images() == [f"content{file['url']}"]
    assert (
        api.site.scale(f"content{file['url']}").snapshot.media[file["url"].rpartition("/")[2]].get("formats")
    )


def test_a_picture_is_hashed_before_the_write_lock_is_held(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    held, file_digest = list[bool](), hashlib.file_digest

    def digest(file: BufferedReader, name: str) -> Any:
        held.append(is_held(api.root))
        return file_digest(file, name)

    monkeypatch.setattr(hashlib, "file_digest", digest)
    file = upload(api, (picture(), "a.png")).body[0]
    assert file["formats"]
    assert len(held) >= 2  # again after the picture was scaled
    assert not any(held)
    changed = upload(api, (picture(610), "a.png"), query=f"?id={file['id']}").body
    assert (changed["width"], any(held)) == (610, False)


def is_held(root: Path) -> bool:
    """Return whether a process holds the site's write lock."""
    folder = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(folder)
    return False


def test_a_file_is_found_without_reading_the_rows_of_all(api: Api) -> None:
    stored = f"file: {{sha256: {'a' * 64}, ext: .txt, size: 5}}\n"
    names = [f"{number}.txt" for number in range(20)]
    write(api.root, {f"content/uploads/{name}.yaml": stored for name in names})
    api.site.refresh()
    numbers = {file["name"]: file["id"] for file in api.get("/api/upload/files").body}
    Site(api.root).load()
    again = Site(api.root)
    again.load()  # from the other site's cache
    files = again.state.snapshot.media
    for key in (str(numbers["3.txt"]), files["3.txt"].document_id):
        assert uploading.find_file(again.state.snapshot, "en", key) is files["3.txt"]
    for key in ("", "0", "-1", "none", f"0{numbers['3.txt']}"):
        with pytest.raises(NotFoundError):
            uploading.find_file(again.state.snapshot, "en", key)
    assert [name for name, file in files.items() if file.is_read and name != "3.txt"] == []


def test_an_icon_is_measured_and_not_decoded(api: Api) -> None:
    entry = b"\0\0\0\0\1\0\x20\0" + (1000).to_bytes(4, "little") + (22).to_bytes(4, "little")
    # The picture is larger than an icon can be, but only decoding would reveal its size.
    file = upload(api, (b"\0\0\1\0\1\0" + entry + picture(300, 300), "favicon.ico")).body[0]
    assert (file["width"], file["height"], file["mime"]) == (256, 256, "image/vnd.microsoft.icon")


def test_no_link_that_is_put_in_the_place_of_a_picture_is_followed(api: Api) -> None:
    file = upload(api, (picture(), "a.png")).body[0]
    path = api.root / f"content{file['url']}"
    secret = api.root / ".bifolio" / "secret.png"
    secret.write_bytes(picture(900, 30))
    path.unlink()
    path.symlink_to(secret)
    inside = file["url"].removeprefix("/uploads/")
    assert api.site.image_cache.describe_image(inside) == (None, None, None)
    assert not api.site.image_cache.make_variants_of(inside)


def test_one_upload_of_many_pictures_scales_no_longer_than_others_can_wait(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.service.media.uploads.SCALING_TIMEOUT_S", 0.01)
    files = upload(api, (picture(), "a.png"), (picture(610), "b.png"), (picture(620), "c.png")).body
    assert [file["formats"] is None for file in files] == [False, True, True]
    scaling = Runner([ResizeImages(api.site, Timing())])
    scaling.start()
    until(lambda: all(file["formats"] for file in api.get("/api/upload/files").body))
    scaling.stop()


class CountingFile(io.BytesIO):
    """File in memory that counts its reads."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


TIFF_TAGS = b"".join(
    (1000 + tag).to_bytes(2, "little") + b"\1\0\x09\0\0\0\x08\0\0\0" for tag in range(60_000)
)
MANY_PARTS = {
    "JPEG without a marker": (b"\xff\xd8" + b"\xff" * 1_000_000, ".jpg"),
    "JPEG segments": (b"\xff\xd8" + b"\xff\xe1\0\2" * 200_000, ".jpg"),
    "PNG chunks": (
        picture()[:33] + (b"\0\0\0\0tEXt" + zlib.crc32(b"tEXt").to_bytes(4, "big")) * 80_000,
        ".png",
    ),
    "GIF comments": (b"GIF89a\1\0\1\0\0\0\0" + b"!\xfe\0" * 200_000, ".gif"),
    "TIFF tags": (b"II*\0\x08\0\0\0" + (60_000).to_bytes(2, "little") + TIFF_TAGS + b"\0" * 4, ".tif"),
}


@pytest.mark.parametrize(("data", "ending"), MANY_PARTS.values(), ids=MANY_PARTS.keys())
def test_a_header_of_very_many_parts_is_not_read_to_its_end(data: bytes, ending: str) -> None:
    file = CountingFile(data)
    assert measure(file, ending) is None
    assert file.reads <= MAX_READS + 1


@pytest.mark.parametrize(
    ("kind", "part", "most"),
    [
        ("JPEG", b"\xff\xe1\xea\x68Exif\0\0" + b"x" * 60_000, 700),
        ("PNG", b"\0\0\0\0tEXt" + zlib.crc32(b"tEXt").to_bytes(4, "big"), 1_000_000),
    ],
)
def test_a_header_that_is_too_long_is_none(kind: str, part: bytes, most: int) -> None:
    begin = {"JPEG": 2, "PNG": 33}[kind]
    sent = picture(300, 200, kind)
    for count, size in ((10, ImageSize(300, 200)), (most, None)):
        file = io.BytesIO(sent[:begin] + part * count + sent[begin:])
        with computing_less_than(5):  # Reading the whole file would take 9 s in the first case.
            assert measure(file, f".{kind.lower()}") == size
