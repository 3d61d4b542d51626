"""Writes that change nothing, while a file was edited by hand and the server has not noticed this yet."""

import json

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, collection, documents

NOTE = "content/notes/a.json"


@pytest.mark.parametrize("path", ["/api/notes/a", "/api/notes/a?status=draft"])
@pytest.mark.parametrize("drafts", [False, True])
def test_values_that_an_edit_has_just_replaced_are_written(
    make_api: MakeApi, drafts: bool, path: str
) -> None:
    api = make_api(
        {
            **collection("note", {"title": STRING, "text": STRING}, drafts=drafts),
            **documents("notes", a={"title": "Old", "publishedAt": "2024-01-01T00:00:00Z"}),
        }
    )
    (api.root / NOTE).write_text('{"title": "By hand", "text": "new", "publishedAt": "2024-01-01T00:00:00Z"}')
    answer = api.put(path, {"title": "Old"})
    assert answer.status == 200
    assert (answer.data["title"], answer.data["text"]) == ("Old", "new")
    written = [one for one in (api.root / "content/notes").iterdir() if "Old" in one.read_text()]
    assert len(written) == 1
    assert json.loads((api.root / NOTE).read_text())["text"] == "new"


def test_a_batch_with_such_values_is_prepared_again(make_api: MakeApi) -> None:
    api = make_api(
        {**collection("note", {"title": STRING}), **documents("notes", a={"title": "Old"}, b={"title": "B"})}
    )
    (api.root / NOTE).write_text('{"title": "By hand"}')
    changes = [
        {"method": "PUT", "path": f"/api/notes/{id_}", "body": {"data": {"title": title}}}
        for id_, title in (("a", "Old"), ("b", "New"))
    ]
    answer = api.ask("POST", "/batch", json={"operations": changes})
    assert answer.status == 200, answer.text
    assert json.loads((api.root / NOTE).read_text())["title"] == "Old"
