"""Relations to what a writer may not find are as attributes that there are not, whatever is sent for them."""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, collection, component, documents, relation

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
    for data, key in (({name: value}, name), ({"box": {"vault": value}}, "vault")):
        for answer in (api.put("/api/notes/a", data, "writer"), api.post("/api/notes", data, "writer")):
            assert answer.error["message"] == f"Invalid key {key}"
    assert api.read("content/notes/a.json") == before
    assert api.put("/api/notes/a", {name: None}).status == 200
    assert api.read("content/notes/a.json") != before
