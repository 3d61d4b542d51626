"""`options.otherKeys`: keys of a file that are not attributes are read and written as one `json`
attribute.
"""

import json
from pathlib import Path

import pytest

from server.errors import SetupError
from server.schema.load import read_content_types
from tests.sites import STRING, Api, collection, load

SEA = """\
# words of the sea
"nick name": the blue
tide.high: 4.2  # metres
404: gone
title: Sea
nested: {a: 1}
"""


@pytest.fixture
def api(tmp_path: Path) -> Api:
    types = collection("word", {"title": STRING, "data": "json"}, otherKeys="data")
    api = Api.of(load(tmp_path, {**types, "content/words/sea.yaml": SEA}))
    assert api.site.problems == ()
    return api


def test_they_are_one_value(api: Api) -> None:
    word = api.get("/api/words/sea").data
    assert word["title"] == "Sea"
    assert word["data"] == {"nick name": "the blue", "tide.high": 4.2, "404": "gone", "nested": {"a": 1}}
    api.accounts.close()


def test_a_write_changes_only_the_lines_of_keys_that_changed(api: Api) -> None:
    data = api.get("/api/words/sea").data["data"]
    changed = {**data, "tide.high": 4.3, "new": True}
    del changed["404"]
    assert api.put("/api/words/sea", {"data": changed}).data["data"] == changed
    text = api.read("content/words/sea.yaml")
    assert text.startswith(
        '# words of the sea\n"nick name": the blue\ntide.high: 4.3  # metres\ntitle: Sea\n'
    )
    assert "new: true\n" in text
    assert "404" not in text
    assert "data" not in text
    assert api.put("/api/words/sea", {"data": None}).data == {**api.get("/api/words/sea").data, "data": None}
    assert "nested" not in api.read("content/words/sea.yaml")
    api.accounts.close()


def test_a_new_document_says_them_as_its_own_keys(api: Api) -> None:
    new = api.post("/api/words", {"title": "Fog", "data": {"nick name": "haar"}}).data
    text = api.read(f"content/words/{new['documentId']}.md")
    assert "nick name: haar\n" in text
    assert "data" not in text
    assert new["data"] == {"nick name": "haar"}
    api.accounts.close()


@pytest.mark.parametrize("data", [["a"], "a", 5, {"title": "x"}, {"documentId": "x"}])
def test_what_a_file_can_not_say_there_is_refused(api: Api, data: object) -> None:
    before = api.read("content/words/sea.yaml")
    assert api.put("/api/words/sea", {"data": data}).status == 400
    assert api.read("content/words/sea.yaml") == before
    api.accounts.close()


@pytest.mark.parametrize("name", ["title", "nothing", 5])
def test_it_names_a_json_attribute(tmp_path: Path, name: object) -> None:
    path = tmp_path / "content-types/word.json"
    path.parent.mkdir()
    path.write_text(collection("word", {"title": STRING}, otherKeys=name)["content-types/word.json"])
    assert json.loads(path.read_text())["options"]["otherKeys"] == name
    with pytest.raises(SetupError, match="must be the name of an attribute of type json"):
        read_content_types(tmp_path)
