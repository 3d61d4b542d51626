"""Relations to documents that a user may not find: writes must behave as if the attribute did not exist."""

import json
from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component, documents, relation

FILES = {
    **collection(
        "note",
        {
            "text": STRING,
            "vault": relation("oneToOne", "vault"),
            "vaults": relation("oneToMany", "vault"),
            "box": {"type": "component", "component": "shared.box"},
        },
    ),
    **collection("vault", {"code": STRING}),
    **component("shared.box", {"label": STRING, "vault": relation("oneToOne", "vault")}),
    **documents("vaults", v={"code": "1"}),
    **documents("notes", a={"text": "x", "vault": "v", "vaults": ["v"], "box": {"label": "l", "vault": "v"}}),
}


@pytest.mark.parametrize("value", [None, [], {}, "", {"set": []}, {"disconnect": ["v"]}, "v"])
@pytest.mark.parametrize("name", ["vault", "vaults"])
def test_a_relation_to_a_hidden_type_can_not_be_cleared(make_api: MakeApi, name: str, value: Any) -> None:
    api = make_api(FILES)
    api.token("writer", may=["note.find", "note.findOne", "note.create", "note.update"])
    before = api.read("content/notes/a.json")
    for data, key in (({name: value}, name), ({"box": {"vault": value}}, "vault at box")):
        for answer in (api.put("/api/notes/a", data, "writer"), api.post("/api/notes", data, "writer")):
            assert answer.error["message"] == f"Invalid key {key}"
    assert api.read("content/notes/a.json") == before
    assert api.put("/api/notes/a", {name: None}).status == 200
    assert api.read("content/notes/a.json") != before


# --- relations to several types -------------------------------------------------------------------

VAULT, TAG = "api::vault.vault", "api::tag.tag"
MORPHS = {
    **FILES,
    **collection("tag", {"name": STRING}),
    **collection(
        "page",
        {
            "text": STRING,
            "one": {"type": "relation", "relation": "morphToOne"},
            "many": {"type": "relation", "relation": "morphToMany"},
            "part": {"type": "component", "component": "shared.part"},
        },
    ),
    **component("shared.part", {"label": STRING, "many": {"type": "relation", "relation": "morphToMany"}}),
    **documents("tags", t={"name": "T"}, u={"name": "U"}),
}


def targets(*names: str) -> list[dict[str, str]]:
    """Return targets as in files and request bodies. The name "v" is a vault, all other names are tags."""
    return [{"__type": VAULT if name == "v" else TAG, "documentId": name} for name in names]


def page(many: list[str], one: str) -> dict[str, Any]:
    return {
        "text": "x",
        "many": targets(*many),
        **({"one": targets(one)[0]} if one else {}),
        "part": {"label": "l", "many": targets(*many)},
    }


@pytest.fixture
def pages(make_api: MakeApi) -> Api:
    """A site with pages, some of which have the hidden target "v"."""
    api = make_api(
        {**MORPHS, **documents("pages", with_v=page(["t", "v", "u"], "v"), without=page(["t", "u"], ""))}
    )
    api.token("writer", may=["page.find", "page.findOne", "page.create", "page.update", "tag.find"])
    return api


def held(api: Api, name: str) -> dict[str, Any]:
    """Return the targets in a page's file, by attribute."""
    file = json.loads(api.read(f"content/pages/{name}.json"))

    def ids(value: Any) -> list[str]:
        found = value if isinstance(value, list) else [value] if value else []
        return [target["documentId"] for target in found]

    part = file.get("part") or {}
    return {"many": ids(file.get("many")), "one": ids(file.get("one")), "part": ids(part.get("many"))}


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({"many": None}, {"many": ["v"]}),
        ({"many": []}, {"many": ["v"]}),
        ({"many": {"set": targets("u")}}, {"many": ["u", "v"]}),
        ({"many": targets("t", "u")}, {}),
        ({"many": targets("u", "t")}, {"many": ["u", "v", "t"]}),
        ({"one": None}, {}),
        ({"one": []}, {}),
        ({"one": targets("t")[0]}, {"one": ["t"]}),
        ({"part": {"many": []}}, {"part": ["v"]}),
    ],
)
def test_a_hidden_target_among_others_stays_where_it_is(
    pages: Api, data: dict[str, Any], kept: dict[str, list[str]]
) -> None:
    answers = []
    if "part" in data:
        data = {"part": {**data["part"], "label": "l"}}
    for name in ("with_v", "without"):
        if "part" in data:
            shown = pages.get(f"/api/pages/{name}?populate=part", "writer").data["part"]["id"]
            data["part"]["id"] = shown
        answer = pages.put(f"/api/pages/{name}?populate[many][populate]=*&populate[one]=true", data, "writer")
        assert answer.status == 200
        answers.append({key: answer.data[key] for key in ("many", "one", "text")})
    assert answers[0] == answers[1]
    before = {"many": ["t", "v", "u"], "one": ["v"], "part": ["t", "v", "u"]}
    assert held(pages, "with_v") == {**before, **kept}


def test_who_may_find_all_targets_clears_them(pages: Api) -> None:
    pages.put("/api/pages/with_v", {"many": None, "one": None, "part": {"many": []}})
    assert held(pages, "with_v") == {"many": [], "one": [], "part": []}


def test_a_relation_of_whose_types_none_may_be_found_is_refused(pages: Api) -> None:
    pages.token("blind", may=["page.update"])
    assert pages.put("/api/pages/with_v", {"many": None}, "blind").error["message"] == "Invalid key many"
    assert held(pages, "with_v")["many"] == ["t", "v", "u"]


# --- rejected writes ----------------------------------------------------------------------------


def test_a_refusal_is_that_of_a_component_that_has_no_such_attribute(make_api: MakeApi) -> None:
    api = make_api(FILES)
    api.token("writer", may=["note.find", "note.findOne", "note.create", "note.update"])
    for value in (None, "v", {"connect": ["v"]}):
        hidden, unknown = (
            api.put("/api/notes/a", {"box": {name: value}}, "writer") for name in ("vault", "nope")
        )
        assert hidden.text == unknown.text.replace("nope", "vault")
