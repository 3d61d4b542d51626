"""Tests of the media library: folders, unused files, and the documents that use a file."""

import json
from pathlib import Path

import pytest

from tests.sites import STRING, Api, collection, component, make

FILES: dict[str, str | bytes] = {
    **collection(
        "post",
        {
            "title": STRING,
            "cover": {"type": "media"},
            "secret": {"type": "media", "private": True},
            "text": {"type": "richtext"},
            "blocks": {"type": "blocks"},
            "seo": {"type": "component", "component": "page.seo"},
            "parts": {"type": "dynamiczone", "components": ["page.seo"]},
        },
        drafts=True,
    ),
    **component("page.seo", {"image": {"type": "media", "multiple": True}, "note": {"type": "text"}}),
    **collection("vault", {"title": STRING, "cover": {"type": "media"}}),
    "content/posts/one.json": json.dumps(
        {
            "title": "One",
            "cover": "cover.txt",
            "secret": "secret.txt",
            "text": "See [a](/uploads/a/linked.txt) and <../uploads/a/with%20space (1).txt>.",
            "blocks": [{"type": "image", "image": {"url": "https://x.org/uploads/small_block.png?v=1"}}],
            "seo": {"image": ["a/b/seo.txt"], "note": "/uploads/noted.txt, and more"},
            "parts": [{"__component": "page.seo", "image": ["zone.txt", "cover.txt"]}],
        }
    ),
    "content/posts/two.draft.json": json.dumps({"title": "Two", "cover": "drafted.txt"}),
    "content/vaults/v.json": json.dumps({"title": "V", "cover": "cover.txt"}),
    **{
        f"content/uploads/{name}": name
        for name in (
            *("cover.txt", "secret.txt", "block.png", "noted.txt", "zone.txt", "drafted.txt", "none.txt"),
            *("a/linked.txt", "a/with space (1).txt", "a/b/seo.txt", "a/b/unused.txt", "c/d/deep.txt"),
        )
    },
    "site.yaml": "roles:\n  public: {upload: [find, findOne]}\n",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("editor", may=["upload.find", "upload.findOne", "upload.destroy", "post.find"])
    return api


def names(api: Api, query: str, who: str = "full") -> list[str]:
    files = api.get(f"/api/upload/files/page?sort=name&{query}", who).data
    return [file["name"] for file in files]


def test_folders_are_listed_with_the_number_of_files_directly_in_them(api: Api) -> None:
    found = {folder["path"]: folder["files"] for folder in api.get("/api/upload/folders").data}
    assert found == {"": 7, "a": 2, "a/b": 2, "c": 0, "c/d": 1}


def test_a_list_can_be_limited_to_a_folder(api: Api) -> None:
    assert names(api, "folder=a") == ["linked.txt", "with space (1).txt"]
    assert names(api, "folder=/a/b/&filters[name][$startsWith]=s") == ["seo.txt"]
    assert len(names(api, "folder=")) == 7
    assert names(api, "folder=none") == []
    page = api.get("/api/upload/files/page?folder=&sort=name&pagination[pageSize]=2").body
    assert [file["name"] for file in page["data"]] == ["block.png", "cover.txt"]
    assert page["meta"]["pagination"]["total"] == 7
    for wrong in ("folder[]=a&folder[]=b", "unused=maybe"):
        assert api.get(f"/api/upload/files/page?{wrong}").status == 400


def test_unused_files_are_those_that_no_document_mentions(api: Api) -> None:
    assert names(api, "unused=true") == ["deep.txt", "none.txt", "unused.txt"]
    assert len(names(api, "unused=false")) == 9
    assert names(api, "unused=true&folder=a/b", "editor") == ["unused.txt"]
    assert api.get("/api/upload/files/page?unused=true", "public").status == 403


def test_writes_change_which_files_are_unused(api: Api) -> None:
    assert "none.txt" in names(api, "unused=true")
    assert api.put("/api/vaults/v", {"cover": "none.txt"}).status == 200
    assert names(api, "unused=true") == ["deep.txt", "unused.txt"]  # a post still uses cover.txt
    assert api.ask("DELETE", "/api/posts/one").status == 204
    assert len(names(api, "unused=true")) == 10
    assert names(api, "unused=false") == ["drafted.txt", "none.txt"]


def test_the_documents_that_use_a_file_are_listed_with_their_attributes(api: Api) -> None:
    found = api.get("/api/upload/files/cover.txt/usage").body
    assert found["data"] == [
        {
            "type": "post",
            "documentId": "one",
            "locale": "en",
            "status": "published",
            "title": "One",
            "attributes": ["cover", "parts.image"],
        },
        {
            "type": "vault",
            "documentId": "v",
            "locale": "en",
            "status": "published",
            "title": "V",
            "attributes": ["cover"],
        },
    ]
    assert found["meta"] == {"total": 2, "hidden": False}
    for name, places in (
        ("a--linked.txt", ["text"]),
        ("block.png", ["blocks"]),
        ("noted.txt", ["seo.note"]),
        ("none.txt", []),
    ):
        uses = api.get(f"/api/upload/files/{name}/usage").data
        assert [place for use in uses for place in use["attributes"]] == places
    assert api.get("/api/upload/files/nothing/usage").status == 404


def test_hidden_documents_are_mentioned_without_details_for_callers_who_may_delete_files(api: Api) -> None:
    cover, drafted, secret = (
        api.get(f"/api/upload/files/{name}.txt/usage", "editor").body
        for name in ("cover", "drafted", "secret")
    )
    assert ([use["type"] for use in cover["data"]], cover["meta"]) == (["post"], {"total": 1, "hidden": True})
    for found in (drafted, secret):  # used by a draft, and by a private attribute
        assert found == {"data": [], "meta": {"total": 0, "hidden": True}}
    public = api.get("/api/upload/files/cover.txt/usage", "public").body
    assert public == {"data": [], "meta": {"total": 0, "hidden": None}}
