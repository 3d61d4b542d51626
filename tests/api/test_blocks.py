"""Tests of blocks: null stays null, and flags and numbers that are sent as strings are stored with their real
type.
"""

import json
from typing import Any

import pytest
from click.testing import CliRunner

from server.commands.cli import main
from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component

FILES = {
    **collection(
        "post", {"title": STRING, "story": "blocks", "box": {"type": "component", "component": "x.box"}}
    ),
    **component("x.box", {"story": {"type": "blocks"}}),
}
TEXT = {"type": "text", "text": "x"}
FILE = {
    **dict.fromkeys(("name", "url", "hash", "ext", "mime", "provider"), "/x"),
    "createdAt": "2024-01-01T00:00:00.000Z",
    "updatedAt": "2024-01-01T00:00:00.000Z",
    "width": 1,
    "height": 2,
    "size": 1.5,
}
NULLS: list[Any] = [
    {"type": "code", "language": None, "children": [TEXT]},
    {"type": "paragraph", "format": None, "url": None, "name": None, "children": [TEXT]},
    {
        "type": "image",
        "image": {
            **FILE,
            "caption": None,
            "alternativeText": None,
            "formats": {"small": {"name": None, "url": None, "sizes": [{"url": None}]}},
        },
        "children": [{"type": "text", "text": "null"}],
    },
]
DAMAGED = """
  - type: code
    language: "null"
    children:
      - type: text
        text: "null"
  - type: image
    image: {name: "null", caption: "null", alternativeText: 'null'}
    children: []
"""


@pytest.fixture(params=["md", "json", "yaml"])
def api(make_api: MakeApi, request: pytest.FixtureRequest) -> Api:
    described = json.loads(FILES["content-types/post.json"])
    described["options"]["format"] = request.param
    return make_api({**FILES, "content-types/post.json": json.dumps(described)})


def test_null_stays_null_at_every_depth(api: Api) -> None:
    made = api.post("/api/posts?populate=*", {"story": NULLS, "box": {"story": NULLS}}).data
    assert (made["story"], made["box"]["story"]) == (NULLS, NULLS)
    again = api.put(f"/api/posts/{made['documentId']}", {"story": made["story"], "title": "T"}).data
    assert again["story"] == NULLS
    assert api.get(f"/api/posts/{made['documentId']}").data["story"] == NULLS


def test_what_is_sent_as_text_is_stored_as_what_it_is(api: Api) -> None:
    sent = [
        {
            "type": "heading",
            "level": "2",
            "children": [{**TEXT, "bold": "true", "italic": "False", "code": 1}],
        },
        {"type": "image", "image": {**FILE, "width": "10", "size": " 2.5"}, "children": []},
        {"type": "list", "format": "ordered", "children": [{"type": "list-item", "children": [TEXT]}]},
    ]
    story = api.post("/api/posts", {"story": sent}).data["story"]
    assert story[0] == {
        "type": "heading",
        "level": 2,
        "children": [{**TEXT, "bold": True, "italic": False, "code": True}],
    }
    assert (story[1]["image"]["width"], story[1]["image"]["size"]) == (10, 2.5)
    assert story[2] == sent[2]


@pytest.mark.parametrize("flag", [None, "yes", 2, [], {}])
def test_a_flag_that_is_none_is_refused(make_api: MakeApi, flag: Any) -> None:
    children = [{**TEXT, "bold": flag}]
    error = make_api(FILES).post("/api/posts", {"story": [{"type": "paragraph", "children": children}]}).error
    assert error["details"]["errors"][0]["path"] == ["story", "0", "children", "0", "bold"]


@pytest.mark.parametrize("width", [None, "", "ten", True, "1e", []])
def test_what_is_no_number_is_refused(make_api: MakeApi, width: Any) -> None:
    story = [{"type": "image", "image": {**FILE, "width": width}, "children": []}]
    assert make_api(FILES).post("/api/posts", {"story": story}).status == 400


def test_null_in_files_is_null(make_api: MakeApi) -> None:
    story = "- {type: code, language: null, children: [{type: text, text: 007}]}\n- {type: image, url: ~}"
    api = make_api({**FILES, "content/posts/a.md": f"---\nstory:\n{story}\n---\n"})
    code, image = api.get("/api/posts/a").data["story"]
    assert (code["language"], code["children"][0]["text"], image["url"]) == (None, "007", None)
    assert not api.site.problems


def test_files_with_the_damage_are_named_and_mended(
    make_api: MakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = DAMAGED.replace("\n  ", "\n    ")
    text = f"---\ntitle: T\nstory:{DAMAGED}box:\n  story:{inner}---\n"
    api = make_api({**FILES, "content/posts/a.md": text, "site.yaml": ""})
    monkeypatch.chdir(api.root)
    found = json.loads(CliRunner().invoke(main, ["check", "--format", "json"]).stdout)["problems"]
    assert [(p["line"], p["rule"], p["severity"]) for p in found] == [
        (line, "value", "warning") for line in (5, 10, 10, 15, 20, 20)
    ]
    assert found[0]["message"] == 'story.0.language: found the string "null" where null was probably meant'
    assert found[0]["fix"] == "--fix changes it to null"
    assert CliRunner().invoke(main, ["check", "--fix"]).exit_code == 0
    mended = text.replace('language: "null"', "language: null")
    mended = mended.replace(
        "caption: \"null\", alternativeText: 'null'", "caption: null, alternativeText: null"
    )
    assert api.read("content/posts/a.md") == mended
    assert json.loads(CliRunner().invoke(main, ["check", "--format", "json"]).stdout)["problems"] == []
