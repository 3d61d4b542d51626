"""Tests of reads as a role, with the header Bifolio-Role: they never show more than the caller may see."""

from pathlib import Path
from typing import Any

import pytest

from tests.sites import STRING, Answer, Api, collection, documents, make

FILES = {
    **collection("note", {"title": STRING}, drafts=True),
    **collection("tag", {"name": STRING}),
    **documents("notes", a={"title": "A"}),
    **documents("tags", red={"name": "Red"}),
    "content/notes/b.draft.json": '{"title": "B"}',
    "site.yaml": """
roles:
  public: {tag: [find]}
  editor: {note: [find, findOne, readDraft], user: [find]}
  guest: {}
""",
}


@pytest.fixture
def api(tmp_path: Path) -> Api:
    api = make(tmp_path, FILES)
    api.token("helper", may=("role.find", "note.find", "tag.find"))
    api.token("other", may=("note.find",))
    return api


def ask(api: Api, path: str, role: str, who: str = "full", method: str = "GET", **more: Any) -> Answer:
    return api.ask(method, path, who, headers={"Bifolio-Role": role}, **more)


def test_a_read_shows_what_a_role_would_see(api: Api) -> None:
    assert ask(api, "/api/notes?status=draft", "editor").ids == ["a", "b"]
    assert ask(api, "/api/tags", "editor").status == 403
    assert ask(api, "/api/tags", "public").ids == ["red"]
    assert ask(api, "/api/notes", "public").status == 403
    assert ask(api, "/users", "editor").status == 200
    answer = ask(api, "/access", "editor")
    assert answer.data["caller"] == {"kind": "role", "name": "editor"}
    assert answer.data["permissions"] == {"note": ["find", "findOne", "readDraft"], "user": ["find"]}
    assert ask(api, "/access", "guest").data["permissions"] == {}


def test_a_read_as_a_role_shows_no_more_than_the_caller_may_see(api: Api) -> None:
    assert ask(api, "/api/notes", "editor", "helper").ids == ["a"]
    assert ask(api, "/api/notes?status=draft", "editor", "helper").status == 403
    assert ask(api, "/api/notes/a", "editor", "helper").status == 403
    assert ask(api, "/users", "editor", "helper").status == 403
    assert ask(api, "/api/tags", "editor", "helper").status == 403
    for who in ("other", "public"):
        assert ask(api, "/api/notes", "editor", who).status == 403
    assert ask(api, "/api/notes", "editor", "nonsense").status == 401
    assert ask(api, "/api/notes", "none").error["message"] == 'unknown role "none" in the header Bifolio-Role'


@pytest.mark.parametrize("role", ["", " ", "%20"])
def test_an_empty_role_is_refused(api: Api, role: str) -> None:
    """Otherwise, a client with an empty variable would show everything that the caller may see."""
    answer = ask(api, "/api/notes", role)
    assert (answer.status, "Bifolio-Role is empty" in answer.error["message"]) == (400, True)


def test_a_write_as_a_role_is_refused(api: Api) -> None:
    for method, path in (("PUT", "/api/notes/a"), ("POST", "/users"), ("DELETE", "/api/notes/a")):
        answer = ask(api, path, "editor", method=method, json={"data": {"title": "C"}})
        assert answer.status == 403
        assert answer.error["message"] == "Requests with the header Bifolio-Role can only read"
    assert api.get("/api/notes/a").data["title"] == "A"


def test_no_cache_mixes_the_responses(api: Api) -> None:
    tag = api.get("/api/notes").headers["ETag"]
    for path in ("/api/notes", "/access", "/api/tags"):
        answer = ask(api, path, "editor")
        assert answer.headers["Cache-Control"] == "no-store"
    narrowed = api.ask("GET", "/api/notes", headers={"Bifolio-Role": "public", "If-None-Match": tag})
    assert narrowed.status == 403
    assert api.get("/api/tags").ids == ["red"]
