"""Users who may update documents but not read drafts: a write must neither reveal nor publish a draft."""

from pathlib import Path
from typing import Any

import pytest

from tests.sites import STRING, Api, collection, make, relation

FILES: dict[str, str | bytes] = {
    **collection(
        "note",
        {
            "title": STRING,
            "text": STRING,
            "plan": {"type": "string", "required": True, "maxLength": 20},
            "box": relation("manyToOne", "box", inversedBy="notes"),
        },
        drafts=True,
    ),
    **collection(
        "box", {"name": STRING, "notes": relation("oneToMany", "note", mappedBy="box")}, drafts=True
    ),
    **collection("home", {"title": STRING, "text": STRING}, drafts=True, single=True),
    **collection("place", {"title": STRING, "text": STRING}, drafts=True, localized=True),
    "content/notes/a.json": '{"title": "A", "plan": "open"}',
    "content/notes/a.draft.json": '{"title": "hidden", "plan": "hidden", "box": "one"}',
    "content/notes/d.draft.json": '{"title": "hidden", "plan": "hidden, and much too long"}',
    "content/notes/e.json": '{"title": "E", "plan": "open"}',
    "content/boxs/one.json": '{"name": "One"}',
    "content/boxs/one.draft.json": '{"name": "hidden"}',
    "content/boxs/two.draft.json": '{"name": "hidden"}',
    "content/home.draft.json": '{"title": "hidden"}',
    "content/places/p.draft.json": '{"title": "hidden", "text": "hidden"}',
    "site.yaml": "locales: {default: en, available: [en, fr]}\n",
}
WRITER = [f"{name}.{action}" for name in ("note", "box", "home", "place") for action in ("find", "update")]


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("writer", may=[*WRITER, "note.create"])
    api.token("editor", may=[*WRITER, "note.readDraft", "box.readDraft"])
    return api


def test_what_is_published_and_its_draft_get_what_is_named_each_beside_what_else_it_says(api: Api) -> None:
    written = api.put("/api/notes/a", {"text": "new"}, "writer")
    assert (written.status, written.data["title"], written.data["text"]) == (200, "A", "new")
    assert "hidden" not in written.text
    assert "hidden" not in api.read("content/notes/a.json")
    draft = api.get("/api/notes/a?status=draft&populate=box").data
    assert (draft["title"], draft["text"], draft["box"]["name"]) == ("hidden", "new", "hidden")
    assert api.put("/api/notes/a", {}, "writer").data["title"] == "A"
    assert api.put("/api/notes/a", {}, "editor").data["title"] == "hidden"


@pytest.mark.parametrize(("path", "data"), [("notes/d", {"plan": "x"}), ("notes/d", {}), ("home", {})])
def test_what_is_a_draft_alone_is_not_published_unseen(api: Api, path: str, data: dict[str, str]) -> None:
    before = {path: api.read(f"content/{path}") for path in api.files}
    refused = api.put(f"/api/{path}", data, "writer")
    assert (refused.status, refused.body["error"]["name"]) == (403, "ForbiddenError")
    assert {path: api.read(f"content/{path}") for path in api.files} == before


def test_no_other_locale_takes_over_what_only_a_draft_says(api: Api) -> None:
    assert api.put("/api/places/p?locale=fr", {"title": "P"}, "writer").status == 404


def test_a_draft_is_no_target_for_who_may_not_read_it(api: Api) -> None:
    number = api.get("/api/boxs/two?status=draft").data["id"]

    def boxes(name: str, number: int) -> list[Any]:
        return [name, {"connect": [name]}, {"set": [{"documentId": name}]}, {"connect": [{"id": number}]}]

    for box, missing in zip(boxes("two", number), boxes("none", 17), strict=True):
        found, other = (api.put("/api/notes/e", {"box": named}, "writer") for named in (box, missing))
        assert found.status == other.status == 400
        assert found.text.replace("two", "none").replace(str(number), "17") == other.text
        assert api.put("/api/notes/e?status=draft", {"box": box}, "editor").status == 200
    assert api.put("/api/notes/e", {"box": "one"}, "writer").status == 200


def test_no_relation_of_a_draft_is_published_by_writing_its_other_side(api: Api) -> None:
    """Only A's draft relates to the box. Adding E to the box must not publish this relation."""
    assert api.put("/api/boxs/one", {"notes": {"connect": ["e"]}}, "writer").status == 200
    notes = api.get("/api/boxs/one?populate=notes").data["notes"]
    assert [note["title"] for note in notes] == ["E"]
    assert api.get("/api/boxs/one").data["name"] == "One"
    assert api.put("/api/boxs/one", {"notes": {"set": ["a"]}}, "writer").status == 200
    notes = api.get("/api/boxs/one?populate=notes").data["notes"]
    assert [note["title"] for note in notes] == ["A"]
    assert api.put("/api/boxs/one", {"notes": []}, "writer").status == 200
    assert api.get("/api/boxs/one?populate=notes").data["notes"] == []


def test_what_is_wrong_with_a_draft_is_not_told(api: Api) -> None:
    assert api.put("/api/notes/d?status=draft", {"title": "New"}, "writer").status == 200
    assert "plan" in api.put("/api/notes/d?status=draft", {"title": "New"}, "editor").text


def test_a_position_next_to_a_draft_tells_nothing_of_it(tmp_path: Path) -> None:
    api = make(
        tmp_path,
        {
            **collection("note", {"title": STRING}, drafts=True),
            **collection("plan", {"notes": relation("manyToMany", "note")}),
            "content/notes/open.json": '{"title": "Open"}',
            "content/notes/secret.draft.json": '{"title": "Secret"}',
            "content/notes/other.draft.json": '{"title": "Other"}',
            "content/plans/one.json": '{"notes": ["secret"]}',
        },
    )
    api.token("writer", may=["plan.update", "plan.find", "note.find"])
    messages = set()
    for neighbour in ("secret", "other", "nobody"):
        connect = [{"documentId": "open", "position": {"before": neighbour}}]
        answer = api.put("/api/plans/one", {"notes": {"connect": connect}}, "writer")
        assert answer.status == 400, neighbour
        messages.add(answer.error["message"].replace(neighbour, "NEIGHBOUR"))
    assert len(messages) == 1
    connect = [{"documentId": "open", "position": {"before": "secret"}}]
    assert api.put("/api/plans/one", {"notes": {"connect": connect}}).status == 200
    assert '"notes": ["open", "secret"]' in api.read("content/plans/one.json")
