"""Media over HTTP: uploading, describing, scaling, serving, deleting."""

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from server.site.scaling import scaler
from tests.making import Made, make, schema

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
def made(tmp_path: Path) -> Made:
    return make(tmp_path, FILES)


def upload(made: Made, *files: tuple[bytes, str], query: str = "", **fields: str) -> Any:
    data: dict[str, Any] = dict(fields)
    data["files"] = [(io.BytesIO(content), name) for content, name in files]
    return made.send("POST", f"/api/upload{query}", raw=data, content_type="multipart/form-data")


def fetch(made: Made, url: str, **headers: str) -> Any:
    """An answer of the public whose file is closed."""
    answer = made.client.get(url, headers=headers)
    answer.get_data()
    answer.close()
    return answer


def test_a_picture_gets_formats_and_is_served_in_all_of_them(made: Made) -> None:
    file = upload(made, (picture(), "sea side.png"), fileInfo='{"alternativeText": "Waves"}').json[0]
    assert (file["width"], file["height"], file["mime"]) == (600, 400, "image/png")
    assert sorted(file["formats"]) == ["small", "thumbnail"]
    assert (file["formats"]["thumbnail"]["width"], file["formats"]["thumbnail"]["height"]) == (234, 156)
    for url in (file["url"], file["formats"]["small"]["url"]):
        answer = fetch(made, url)
        assert (answer.status_code, answer.mimetype) == (200, "image/png")
    small = Image.open(io.BytesIO(fetch(made, file["formats"]["small"]["url"]).data))
    assert small.size == (500, 333)
    described = made.read(f"content{file['url']}.yaml")
    assert "alternativeText: Waves\n" in described


def test_a_file_is_described_attached_and_deleted(made: Made) -> None:
    file = upload(made, (picture(), "a.png")).json[0]
    made.put("/api/posts/one", {"cover": file["id"], "pictures": [file["documentId"]]})
    changed = upload(made, query=f"?id={file['id']}", fileInfo='{"caption": "The bay"}').json
    assert (changed["caption"], changed["name"]) == ("The bay", "a.png")
    post = made.get("/api/posts/one?populate=*")
    assert post["cover"]["caption"] == post["pictures"][0]["caption"] == "The bay"
    assert made.get("/api/posts?filters[cover][caption][$contains]=bay")[0]["title"] == "One"
    assert made.send("DELETE", f"/api/upload/files/{file['id']}").json["id"] == file["id"]
    assert made.files == {"posts/one.md"}
    assert made.get("/api/posts/one?populate=*")["cover"] is None
    assert fetch(made, file["url"]).status_code == 404


def test_a_media_attribute_takes_the_types_that_it_allows(made: Made) -> None:
    text, image = upload(made, (b"text", "a.txt"), (picture(), "b.png")).json
    refused = made.send("PUT", "/api/posts/one", {"cover": text["id"]})
    assert refused.json["error"]["details"]["errors"][0]["path"] == ["cover"]
    assert made.put("/api/posts/one?populate=cover", {"cover": image["id"]})["cover"]["name"] == "b.png"
    assert made.send("PUT", "/api/posts/one", {"cover": 12345}).status_code == 400


def test_an_upload_can_name_its_document(made: Made) -> None:
    files = [(b"one", "a.txt"), (b"two", "b.txt")]
    answer = upload(made, *files, ref="api::post.post", refId="one", field="pictures")
    assert answer.status_code == 201
    assert [f["name"] for f in made.get("/api/posts/one?populate=pictures")["pictures"]] == ["a.txt", "b.txt"]
    wrong = upload(made, (b"x", "c.txt"), ref="api::post.post", refId="nobody", field="cover")
    assert wrong.status_code == 400
    assert not any("c_" in path for path in made.files)


def test_lists_of_files_are_bare_and_can_be_filtered(made: Made) -> None:
    upload(made, (picture(), "a.png"), (b"text", "b.txt"))
    assert [f["name"] for f in made.client.get("/api/upload/files?sort=name:desc").json] == ["b.txt", "a.png"]
    found = made.send("GET", "/api/upload/files?filters[mime][$startsWith]=image&fields=name").json
    assert [f["name"] for f in found] == ["a.png"]
    url = made.send("GET", "/api/upload/files").json[0]["url"]
    assert len(made.send("GET", f"/api/upload/files?filters[url]={url}").json) == 1


@pytest.mark.parametrize(
    "name", ["../../etc/x.txt", "/etc/x.txt", "..\\x.txt", "a" * 400 + ".txt", "é 日本.txt", ".txt"]
)
def test_names_stay_in_the_folder(made: Made, name: str) -> None:
    file = upload(made, (b"text", name)).json[0]
    assert fetch(made, file["url"]).data == b"text"
    assert {path.partition("/")[0] for path in made.files} == {"posts", "uploads"}
    assert all(len(path) < 130 for path in made.files)


def test_a_type_is_told_by_content_not_by_name(made: Made) -> None:
    file = upload(made, (picture(kind="JPEG"), "really.png")).json[0]
    assert (file["ext"], file["mime"]) == (".jpg", "image/jpeg")
    page = upload(made, (b"<script>alert(1)</script>", "page.html")).json[0]
    headers = fetch(made, page["url"]).headers
    assert "script-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_a_bomb_is_no_picture(made: Made) -> None:
    small = bytearray(picture(10, 10))
    small[16:24] = (60_000).to_bytes(4, "big") * 2  # a head that claims 3.6 billion pixels
    file = upload(made, (bytes(small), "bomb.png")).json[0]
    assert (file["width"], file["formats"]) == (None, None)


def test_what_is_too_large_is_refused_and_leaves_nothing(made: Made) -> None:
    answer = upload(made, (b"x" * 400_000, "big.bin"))
    assert (answer.status_code, answer.json["error"]["status"]) == (413, 413)
    assert made.files == {"posts/one.md"}
    incoming = made.root / ".quire/incoming"
    assert not incoming.exists() or list(incoming.iterdir()) == []


def test_ranges_and_validators(made: Made) -> None:
    file = upload(made, (b"0123456789", "digits.txt")).json[0]
    part = fetch(made, file["url"], Range="bytes=2-4")
    assert (part.status_code, part.data) == (206, b"234")
    whole = fetch(made, file["url"])
    again = fetch(made, file["url"], **{"If-None-Match": whole.headers["ETag"]})
    assert (again.status_code, again.data) == (304, b"")


def test_a_picture_that_is_dropped_into_the_folder_appears(made: Made) -> None:
    uploads = made.root / "content/uploads"
    uploads.mkdir()
    (uploads / "dropped.png").write_bytes(picture(800, 300))
    (uploads / "dropped.png.yaml").write_text("alternativeText: By hand\n")
    made.site.refresh()
    file = made.client.get("/api/upload/files").json[0]
    assert (file["name"], file["width"], file["alternativeText"]) == ("dropped.png", 800, "By hand")
    scaling = scaler(made.site)
    scaling.start()
    for _ in range(200):
        if made.client.get("/api/upload/files").json[0]["formats"]:
            break
        scaling._stop.wait(0.05)
    scaling.stop()
    formats = made.client.get("/api/upload/files").json[0]["formats"]
    assert sorted(formats) == ["medium", "small", "thumbnail"]
    assert fetch(made, formats["thumbnail"]["url"]).status_code == 200


def test_who_may_do_what(made: Made) -> None:
    assert made.client.get("/api/upload/files").status_code == 200
    assert made.client.get("/api/upload/files/1").status_code == 403
    assert made.client.post("/api/upload").status_code == 403
    assert made.client.delete("/api/upload/files/1").status_code == 403
    assert made.send("GET", "/api/upload/files/1").json["error"]["message"] == "file.notFound"
