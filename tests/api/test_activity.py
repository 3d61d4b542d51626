"""Tests of `GET /events/activity`: the caller's drafts, and what others have changed."""

from pathlib import Path
from typing import Any

import pytest

from server.events.recorder import Recorder
from tests.sites import Api, collection, make, write

FILES = {
    **collection("note", {"title": "string"}, drafts=True),
    **collection("dossier", {"title": "string"}),
    "content/uploads/a.txt": "a",
}
EDITS = ("note.find", "note.readDraft", "note.create", "note.update", "note.delete")


@pytest.fixture
def api(tmp_path: Path) -> Api:
    """A site whose changes are recorded, with two editors and a reader."""
    made = make(tmp_path, FILES)
    made.site.observe(Recorder(made.root))
    made.site.record()
    made.token("ann", may=(*EDITS, "history.read"))
    made.token("bob", may=EDITS)
    made.token("reader", may=("note.find",))
    return made


def activity(api: Api, who: str, query: str = "?since=0") -> Any:
    answer = api.get(f"/events/activity{query}", who)
    assert answer.status == 200
    return answer.data


def titles(rows: Any) -> list[str | None]:
    return [row["title"] for row in rows]


def test_drafts_are_those_that_the_caller_changed_last(api: Api) -> None:
    first, second = (
        api.post("/api/notes?status=draft", {"title": title}, "ann").data["documentId"]
        for title in ("First", "Second")
    )
    assert titles(activity(api, "ann")["drafts"]) == ["Second", "First"]
    assert activity(api, "bob")["drafts"] == []
    api.put(f"/api/notes/{first}?status=draft", {"title": "By Bob"}, "bob")
    assert titles(activity(api, "ann")["drafts"]) == ["Second"]
    assert titles(activity(api, "bob")["drafts"]) == ["By Bob"]
    api.put(f"/api/notes/{second}", {"title": "Out"}, "ann")
    assert activity(api, "ann")["drafts"] == []
    api.ask("DELETE", f"/api/notes/{first}", "bob")
    assert activity(api, "bob")["drafts"] == []
    assert activity(api, "reader")["drafts"] == []


def test_changes_by_others_are_listed_once_per_document_since_an_event(api: Api) -> None:
    mine = api.post("/api/notes", {"title": "Mine"}, "ann").data["documentId"]
    theirs = api.post("/api/notes", {"title": "Theirs"}, "bob").data["documentId"]
    api.put(f"/api/notes/{theirs}", {"title": "Theirs again"}, "bob")
    (row,) = activity(api, "ann")["others"]
    assert (row["title"], row["by"], row["href"]) == ("Theirs again", "bob", f"/api/notes/{theirs}")
    assert titles(activity(api, "bob")["others"]) == ["Mine"]
    assert activity(api, "bob")["others"][0]["by"] is None
    last = api.get("/events/activity", "ann").body["meta"]["last"]
    assert activity(api, "ann", f"?since={last}")["others"] == activity(api, "ann", "")["others"] == []
    write(api.root, {f"content/notes/{mine}.json": '{"title": "By hand"}'})
    api.site.refresh()
    assert titles(activity(api, "ann", f"?since={last}")["others"]) == ["By hand"]
    api.ask("DELETE", f"/api/notes/{theirs}", "bob")
    (gone,) = (one for one in activity(api, "ann")["others"] if one["documentId"] == theirs)
    assert (gone["event"], gone["title"], gone["href"]) == ("entry.delete", None, None)


def test_only_what_the_caller_may_see_is_listed(api: Api) -> None:
    api.post("/api/notes?status=draft", {"title": "Hidden draft"}, "ann")
    out = api.post("/api/notes", {"title": "Out"}, "ann").data["documentId"]
    api.put(f"/api/notes/{out}?status=draft", {"title": "Hidden change"}, "ann")
    api.post("/api/dossiers", {"title": "Hidden dossier"})
    answer = api.get("/events/activity?since=0", "reader")
    assert titles(answer.data["others"]) == ["Out"]
    assert answer.body["meta"]["others"] == 1
    assert "Hidden" not in answer.text
    assert "ann" not in answer.text
    api.token("nobody", may=["note.create"])
    assert api.get("/events/activity", "nobody").status == 403
