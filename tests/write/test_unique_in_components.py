"""Unique attributes in components: the same value twice in one document is rejected, as it is in two
documents.
"""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component

UNIQUE = {"type": "string", "unique": True}
FILES = {
    **collection(
        "shelf",
        {
            "title": STRING,
            "boxes": {"type": "component", "component": "x.box", "repeatable": True},
            "zone": {"type": "dynamiczone", "components": ["x.box", "x.bag"]},
        },
        drafts=True,
    ),
    **component("x.box", {"code": UNIQUE, "label": STRING}),
    **component("x.bag", {"code": UNIQUE}),
}


def box(code: Any, uid: str = "") -> dict[str, Any]:
    return {"code": code, **({"__component": uid} if uid else {})}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


@pytest.mark.parametrize(
    ("name", "items", "wrong"),
    [
        ("boxes", [box("a"), box("b"), box("a")], [["boxes", "0", "code"], ["boxes", "2", "code"]]),
        ("zone", [box("a", "x.bag"), box("a", "x.bag")], [["zone", "0", "code"], ["zone", "1", "code"]]),
    ],
)
def test_the_same_value_twice_in_one_body_is_refused(
    api: Api, name: str, items: list[Any], wrong: list[list[str]]
) -> None:
    error = api.post("/api/shelfs", {name: items}).error
    assert [one["path"] for one in error["details"]["errors"]] == wrong
    draft = api.post("/api/shelfs?status=draft", {name: items}).data["documentId"]
    assert api.put(f"/api/shelfs/{draft}", {}).status == 400


@pytest.mark.parametrize(
    ("name", "items"),
    [
        ("boxes", [box("a"), box("b")]),
        ("boxes", [box(None), box(None), box(""), box("")]),
        ("zone", [box("a", "x.box"), box("a", "x.bag")]),
    ],
)
def test_what_is_not_the_same_is_taken(api: Api, name: str, items: list[Any]) -> None:
    made = api.post("/api/shelfs", {name: items}).data["documentId"]
    assert api.put(f"/api/shelfs/{made}", {name: items}).status == 200
