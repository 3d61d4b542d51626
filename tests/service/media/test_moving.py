"""Tests of moving media files over HTTP: the documents that use a file are updated."""

import json
from pathlib import Path

import pytest

from tests.sites import STRING, Answer, Api, collection, make

MAY = ["upload.find", "upload.findOne", "upload.upload", "upload.destroy"]
POST = ["post.find", "post.update", "post.readDraft"]
PREFER = {"Prefer": "undo"}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    attributes = {"title": STRING, "cover": {"type": "media"}, "text": {"type": "richtext"}}
    files: dict[str, str | bytes] = {
        **collection("post", attributes, drafts=True),
        **collection("vault", {"title": STRING, "cover": {"type": "media"}}),
        "content/posts/one.md": "---\ntitle: One\ncover: a.png # kept\n---\nSee ![it](/uploads/a.png).\n",
        "content/posts/two.draft.md": "---\ntitle: Two\ncover: a.png\n---\n",
        "content/vaults/v.json": json.dumps({"title": "V", "cover": "secret.bin"}),
        "content/uploads/a.png": b"\x89PNG a",
        "content/uploads/a.png.yaml": "documentId: fog\nalternativeText: Fog\n",
        "content/uploads/secret.bin": b"\xff",
        "content/uploads/free.txt": "free",
    }
    api = make(tmp_path, files)
    api.token("media", may=MAY)
    api.token("editor", may=[*MAY, *POST])
    api.token("source", may=[*MAY, *POST, "post.findOne", "source.read"])
    return api


def move(api: Api, key: str, who: str = "editor", query: str = "", **body: object) -> Answer:
    return api.ask("POST", f"/api/upload/files/{key}/move{query}", who, json=body, headers=PREFER)


def contents(api: Api) -> dict[str, bytes]:
    return {path: (api.root / "content" / path).read_bytes() for path in api.files}


def test_the_documents_that_use_a_file_are_updated_and_the_move_can_be_undone(api: Api) -> None:
    before = contents(api)
    moved = move(api, "fog", folder="/ships/2024", fileName="ferry.png")
    assert (moved.data["url"], moved.data["documentId"]) == ("/uploads/ships/2024/ferry.png", "fog")
    assert moved.body["meta"] == {
        "documents": 2,
        "links": [
            {
                "path": "content/posts/one.md",
                "line": 5,
                "old": "/uploads/a.png",
                "new": "/uploads/ships/2024/ferry.png",
            }
        ],
    }
    assert "cover: ships/2024/ferry.png # kept\n" in api.read("content/posts/one.md")
    assert api.get("/api/posts/two?status=draft&populate=cover").data["cover"]["alternativeText"] == "Fog"
    assert api.get("/uploads/a.png").status == 404
    id_ = moved.headers["Bifolio-Undo"]
    assert api.ask("POST", f"/batch/undo/{id_}", "editor").status == 200
    assert contents(api) == before


def test_a_move_needs_the_permission_to_change_each_document(api: Api) -> None:
    before = contents(api)
    for who, key in (("media", "fog"), ("editor", "secret.bin")):
        refused = move(api, key, who, folder="x")
        assert (refused.status, "vault" in refused.text) == (403, False)
    api.token("uploader", may=["upload.find", "upload.upload"])
    assert move(api, "free.txt", "uploader", folder="x").status == 403
    assert contents(api) == before
    assert move(api, "free.txt", "media", folder="x").data["url"] == "/uploads/x/free.txt"
    assert move(api, "x--free.txt", "media", folder="").data["url"] == "/uploads/free.txt"


def test_a_dry_run_shows_what_would_change(api: Api) -> None:
    before = contents(api)
    files = move(api, "fog", "source", "?dryRun=true", fileName="b.png").data["files"]
    assert [(file["path"], file["action"]) for file in files] == [
        ("content/posts/one.md", "update"),
        ("content/posts/two.draft.md", "update"),
    ]
    assert "+cover: b.png # kept" in files[0]["lines"]
    assert move(api, "fog", "editor", "?dryRun=true", fileName="b.png").status == 403  # without source.read
    assert contents(api) == before


def test_what_can_not_be_a_new_name_is_refused(api: Api) -> None:
    before = contents(api)
    for body, status in (
        ({}, 400),
        ({"folder": 3}, 400),
        ({"fileName": "x/y.png"}, 400),
        ({"folder": "../x"}, 400),
        ({"fileName": "a.txt"}, 400),
        ({"folder": ".git"}, 400),
    ):
        assert move(api, "fog", **body).status == status, body  # type: ignore[arg-type]
    assert move(api, "none", folder="x").status == 404
    (api.root / "content/uploads/taken.png").write_bytes(b"another")
    assert move(api, "fog", fileName="taken.png").status == 409
    (api.root / "content/uploads/taken.png").unlink()
    same = move(api, "fog", folder="")
    assert (same.status, same.body["meta"]["documents"]) == (200, 0)
    assert contents(api) == before
