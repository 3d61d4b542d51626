"""Defaults of attributes: in new documents, in files without a value, and in components and dynamic zones."""

import json

import pytest

from server.auth.passwords import check_password
from tests.conftest import MakeApi
from tests.sites import Api, collection, component, documents

NUMBERS = {
    "half": {"type": "float", "default": 2.5},
    "whole": {"type": "float", "default": 2.0},
    "price": {"type": "decimal", "default": 0.1},
    "count": {"type": "integer", "default": 3},
}
SECRET = {"secret": {"type": "password", "default": "sesame"}}
FILES = {
    **collection(
        "item",
        {
            **NUMBERS,
            **SECRET,
            "part": {"type": "component", "component": "x.part"},
            "parts": {"type": "component", "component": "x.part", "repeatable": True},
            "zone": {"type": "dynamiczone", "components": ["x.part"]},
        },
        format="json",
    ),
    **component("x.part", {**NUMBERS, **SECRET}),
    **documents("items", a={"part": {}, "parts": [{}], "zone": [{"__component": "x.part"}]}),
}
EXPECTED = {"half": 2.5, "whole": 2, "price": 0.1, "count": 3}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def test_defaults_with_a_fraction_count(api: Api) -> None:
    body = {"part": {}, "parts": [{}], "zone": [{"__component": "x.part"}]}
    made = api.post("/api/items?populate=*", body).data
    for document in (made, api.get("/api/items/a?populate=*").data):
        for holder in (document, document["part"], document["parts"][0], document["zone"][0]):
            assert {name: holder[name] for name in EXPECTED} == EXPECTED
    assert not api.site.problems


def test_the_default_of_a_password_is_stored_as_a_hash(api: Api) -> None:
    made = api.post("/api/items", {"part": {}}).data["documentId"]
    said = json.loads(api.read(f"content/items/{made}.json"))
    for kept in (said["secret"], said["part"]["secret"]):
        assert kept != "sesame"
        assert check_password(kept, "sesame")


def test_a_password_that_is_said_is_that(api: Api) -> None:
    made = api.post("/api/items", {"secret": "open"}).data["documentId"]
    assert check_password(json.loads(api.read(f"content/items/{made}.json"))["secret"], "open")


def test_a_file_without_a_password_gets_none_by_a_write(api: Api) -> None:
    assert api.put("/api/items/a", {"count": 4}).status == 200
    assert "sesame" not in api.read("content/items/a.json")
    assert "secret" not in json.loads(api.read("content/items/a.json"))
