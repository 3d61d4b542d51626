"""Tests of undoing changes to media files: their content comes back, and the copies do not pile up."""

import io
from pathlib import Path
from typing import Any

import pytest

from server.storage import undo as storage
from server.storage.undo import COPY_SUFFIX
from tests.sites import STRING, Answer, Api, collection, make

BYTES = bytes(range(256)) * 40
MAY = ["upload.find", "upload.findOne", "upload.upload", "upload.destroy"]
PREFER = {"Prefer": "undo"}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    files: dict[str, str | bytes] = {
        **collection("post", {"title": STRING, "cover": {"type": "media"}}),
        "content/posts/one.json": '{"title": "One", "cover": "a.png"}',
        "content/uploads/a.png": BYTES,
        "content/uploads/a.png.yaml": "alternativeText: Fog # kept\n",
        "content/uploads/plain.bin": b"\xff\x00",
    }
    api = make(tmp_path, files)
    api.token("editor", may=MAY)
    return api


def replace(api: Api, content: bytes, name: str = "a.png", who: str = "editor") -> Answer:
    data: dict[str, Any] = {"files": [(io.BytesIO(content), name)], "fileInfo": '{"name": "a.png"}'}
    kind = {"data": data, "content_type": "multipart/form-data"}
    return api.ask("POST", f"/api/upload?id={name}", who, headers=PREFER, **kind)


def delete(api: Api, name: str, who: str = "editor") -> Answer:
    return api.ask("DELETE", f"/api/upload/files/{name}", who, headers=PREFER)


def undo(api: Api, answer: Answer, who: str = "editor", **options: Any) -> Answer:
    return api.ask("POST", f"/batch/undo/{answer.headers['Bifolio-Undo']}", who, **options)


def copies(api: Api) -> list[Path]:
    return list((api.root / ".bifolio/undo").glob(f"*{COPY_SUFFIX}"))


def test_a_deleted_file_comes_back_with_its_description(api: Api) -> None:
    before = api.files
    for name in ("a.png", "plain.bin"):
        deleted = delete(api, name)
        assert api.get(f"/uploads/{name}").status == 404
        assert undo(api, deleted).data["files"] > 0
    assert api.files == before
    assert api.get("/uploads/a.png").raw == BYTES
    assert api.read("content/uploads/a.png.yaml") == "alternativeText: Fog # kept\n"
    assert api.get("/api/posts/one?populate=cover").data["cover"]["alternativeText"] == "Fog"
    assert copies(api) == []


def test_a_replaced_file_comes_back_and_the_undo_can_be_undone(api: Api) -> None:
    replaced = replace(api, b"\x89PNG\r\n\x1a\n another")
    assert api.get("/uploads/a.png").raw != BYTES
    undone = undo(api, replaced, headers=PREFER)
    assert api.get("/uploads/a.png").raw == BYTES
    assert undo(api, undone).status == 200
    assert api.get("/uploads/a.png").raw == b"\x89PNG\r\n\x1a\n another"
    assert copies(api) == []


def test_nothing_is_undone_if_the_file_has_changed_since(api: Api) -> None:
    deleted = delete(api, "a.png")
    (api.root / "content/uploads/a.png").write_bytes(b"another file")
    error = undo(api, deleted).error
    assert (error["status"], error["details"]) == (409, {"files": ["content/uploads/a.png"]})
    assert (api.root / "content/uploads/a.png").read_bytes() == b"another file"


def test_undoing_needs_the_permissions_of_the_write_and_to_upload(api: Api) -> None:
    api.token("deleter", may=["upload.find", "upload.destroy"])
    refused = delete(api, "plain.bin", "deleter")
    assert (refused.status, "Bifolio-Undo" in refused.headers) == (200, False)
    deleted = delete(api, "a.png")
    api.accounts.revoke_token("editor")
    api.token("editor", may=["upload.find", "upload.destroy"])
    assert undo(api, deleted).status == 403
    api.accounts.revoke_token("editor")
    api.token("editor", may=MAY)
    assert undo(api, deleted, "full").status == 404  # of another caller
    assert undo(api, deleted).status == 200


def test_the_oldest_copies_are_deleted_with_their_writes(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_COPIED_BYTES", len(BYTES) + 100)
    (api.root / ".bifolio/undo").mkdir(exist_ok=True)
    (api.root / f".bifolio/undo/left{COPY_SUFFIX}").write_text("by a process that was killed")
    first = replace(api, b"\x89PNG\r\n\x1a\n" + bytes(5000))
    assert len(copies(api)) == 1
    second = replace(api, b"\x89PNG\r\n\x1a\n second")
    assert len(copies(api)) == 1
    assert undo(api, first).status == 404
    assert undo(api, second).status == 200


def test_a_file_that_is_too_large_is_deleted_without_undo(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MAX_MEDIA_BYTES", len(BYTES) - 1)
    deleted = delete(api, "a.png")
    assert (deleted.status, "Bifolio-Undo" in deleted.headers) == (200, False)
    assert copies(api) == []
