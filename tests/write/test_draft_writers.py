"""Users who may write drafts but publish nothing (permission `updateDraft`)."""

from pathlib import Path
from typing import Any

import pytest

from tests.sites import STRING, Api, collection, make, relation

FILES: dict[str, str | bytes] = {
    **collection(
        "note",
        {
            "title": STRING,
            "box": relation("oneToOne", "box", inversedBy="note"),
            "shelf": relation("manyToOne", "shelf", inversedBy="notes"),
            "tags": relation("oneToMany", "tag", mappedBy="note"),
        },
        drafts=True,
    ),
    **collection("box", {"name": STRING, "note": relation("oneToOne", "note", mappedBy="box")}, drafts=True),
    **collection("shelf", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="shelf")}),
    **collection("tag", {"name": STRING, "note": relation("manyToOne", "note", inversedBy="tags")}),
    **collection("home", {"title": STRING}, drafts=True, single=True),
    **collection("marked", {"title": STRING}, drafts=True, draftWhen={"draft": True}),
    **collection("place", {"title": STRING}, drafts=True, localized=True),
    "content/notes/a.json": '{"title": "A"}',
    "content/boxs/one.json": '{"name": "One"}',
    "content/shelfs/top.json": '{"name": "Top"}',
    "content/tags/red.json": '{"name": "Red"}',
    "content/home.json": '{"title": "Home"}',
    "content/markeds/m.md": "---\ntitle: M\n---\n",
    "content/places/p.json": '{"title": "P"}',
    "content/places/p.fr.json": '{"title": "P"}',
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
}
TYPES = ("note", "box", "shelf", "tag", "home", "marked", "place")
READING = [f"{name}.{action}" for name in TYPES for action in ("find", "findOne", "readDraft")]


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("writer", may=[*READING, *(f"{name}.updateDraft" for name in TYPES)])
    return api


def published(api: Api) -> dict[str, Any]:
    """Return the published version of each document."""
    paths = ("notes", "boxs", "shelfs", "tags", "home", "markeds", "places?locale=en", "places?locale=fr")
    return {path: api.get(f"/api/{path}{'&' if '?' in path else '?'}populate=*").body for path in paths}


@pytest.mark.parametrize("path", ["notes/a", "home", "markeds/m", "places/p"])
def test_a_draft_is_written_beside_what_is_published(api: Api, path: str) -> None:
    before = published(api)
    written = api.put(f"/api/{path}?status=draft", {"title": "New"}, "writer")
    assert (written.status, written.data["title"], written.data["publishedAt"]) == (200, "New", None)
    assert published(api) == before
    again = api.put(f"/api/{path}?status=draft", {"title": "Newer"}, "writer")
    assert (again.status, again.data["title"]) == (200, "Newer")
    assert published(api) == before


def test_a_new_document_is_a_draft(api: Api) -> None:
    made = api.post("/api/notes?status=draft", {"title": "B"}, "writer")
    assert (made.status, made.data["publishedAt"]) == (201, None)
    assert api.get(f"/api/notes/{made.data['documentId']}").status == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", "notes/a"),
        ("PUT", "notes/a?status=published"),
        ("PUT", "notes/a?status[]=draft"),
        ("PUT", "home"),
        ("POST", "notes"),
        ("POST", "notes?status=published"),
        ("DELETE", "notes/a"),
        ("DELETE", "notes/a?status=draft"),
        ("DELETE", "home"),
        ("PUT", "shelfs/top?status=draft"),  # this content type has no drafts
        ("POST", "shelfs?status=draft"),
    ],
)
def test_nothing_is_published_changed_or_deleted(api: Api, method: str, path: str) -> None:
    before = api.files, published(api)
    body = None if method == "DELETE" else {"data": {"title": "New"}}
    assert api.ask(method, f"/api/{path}", "writer", json=body).status == 403
    operation = {"method": method, "path": f"/api/{path}", "body": body}
    assert api.ask("POST", "/batch", "writer", json={"operations": [operation]}).status == 403
    assert (api.files, published(api)) == before


def test_a_batch_writes_drafts(api: Api) -> None:
    before = published(api)
    operations = [
        {"method": "POST", "path": "/api/notes?status=draft", "body": {"data": {"title": "B"}}},
        {"method": "PUT", "path": "/api/notes/a?status=draft", "body": {"data": {"title": "New"}}},
    ]
    answer = api.ask("POST", "/batch", "writer", json={"operations": operations})
    assert [result["status"] for result in answer.data] == [201, 200]
    assert published(api) == before


def test_relations_of_a_draft_change_drafts_alone(api: Api) -> None:
    before = published(api)
    assert api.put("/api/notes/a?status=draft", {"box": "one", "shelf": "top"}, "writer").status == 200
    assert published(api) == before
    # The relation is stored in the tag's file.
    refused = api.put("/api/notes/a?status=draft", {"tags": ["red"]}, "writer")
    assert (refused.status, refused.error["message"]) == (
        403,
        "This draft would change published content, because "
        "a relation in it is stored in a published document",
    )
    assert published(api) == before
    assert api.put("/api/notes/a?status=draft", {"tags": ["red"]}).status == 200  # This user may change tags.


def test_what_was_never_published_stays_so(api: Api) -> None:
    made = api.post("/api/places?status=draft", {"title": "Q"}, "writer").data["documentId"]
    assert api.put(f"/api/places/{made}?status=draft&locale=fr", {"title": "R"}, "writer").status == 200
    assert api.put(f"/api/places/{made}", {"title": "Q"}, "writer").status == 403
    assert api.get(f"/api/places/{made}?locale=fr").status == 404


def test_a_draft_that_others_have_changed_is_not_overwritten(api: Api) -> None:
    read = api.get("/api/notes/a?status=draft", "writer")
    api.put("/api/notes/a?status=draft", {"title": "Theirs"})
    headers = {"If-Match": read.headers["ETag"]}
    assert api.put("/api/notes/a?status=draft", {"title": "Mine"}, "writer", headers=headers).status == 412


def test_who_may_write_drafts_is_told_of_no_more_in_the_description(api: Api) -> None:
    paths = api.get("/openapi.json", "writer").body["paths"]
    assert set(paths["/api/notes"]) == {"get", "post"}
    assert "put" not in paths["/api/shelfs/{documentId}"]
    assert "delete" not in paths["/api/notes/{documentId}"]
    shown = [parameter["$ref"] for parameter in paths["/api/notes"]["post"]["parameters"]]
    assert "#/components/parameters/statusOfDraft" in shown
    assert "#/components/parameters/statusWritten" not in shown
