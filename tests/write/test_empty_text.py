"""Empty strings, which forms send for a field without a value, and null for attributes that have a
default.
"""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import STRING, Api, collection, component

UNIQUE = {"type": "string", "unique": True}
FILES = {
    **collection(
        "post",
        {
            "title": STRING,
            "code": {"type": "string", "regex": "^[a-z]+$"},
            "must": {"type": "string", "regex": "^[a-z]+$", "required": True},
            "mail": {"type": "email", "minLength": 3},
            "number": UNIQUE,
            "slug": {"type": "uid"},
            "part": {"type": "component", "component": "x.part"},
            "parts": {"type": "component", "component": "x.part", "repeatable": True},
            "text": {"type": "richtext", "default": "Nothing yet."},
        },
    ),
    **component("x.part", {"number": UNIQUE, "code": {"type": "string", "regex": "^x"}}),
}


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


@pytest.mark.parametrize(
    "values",
    [
        {"code": ""},
        {"number": ""},
        {"slug": ""},
        {"part": {"number": "", "code": ""}},
        {"parts": [{"number": ""}, {"number": ""}]},
    ],
)
def test_empty_text_meets_patterns_and_is_not_unique(api: Api, values: dict[str, Any]) -> None:
    for _ in range(2):
        made = api.post("/api/posts?populate=*", {"must": "x", **values}).data
        assert {name: made[name] for name in values if name in ("code", "number", "slug")} == {
            name: value for name, value in values.items() if isinstance(value, str)
        }
    assert not api.site.problems


@pytest.mark.parametrize(
    ("mail", "message"), [("", "mail cannot be empty"), ("x", "mail must be a valid email")]
)
def test_an_address_has_one_mistake_at_a_time(api: Api, mail: str, message: str) -> None:
    errors = api.post("/api/posts", {"must": "x", "mail": mail}).error["details"]["errors"]
    assert [error["message"] for error in errors] == [message]


def test_a_required_attribute_has_to_match_with_empty_text_as_well(api: Api) -> None:
    assert api.post("/api/posts", {"must": ""}).status == 400
    assert api.post("/api/posts", {"must": "x", "code": "9"}).status == 400


def test_null_clears_a_body_that_has_a_default(api: Api) -> None:
    made = api.post("/api/posts", {"must": "x"}).data
    path = f"/api/posts/{made['documentId']}"
    assert made["text"] == "Nothing yet."
    assert api.put(path, {"text": None}).data["text"] is None
    assert api.get(path).data["text"] is None
    assert api.put(path, {"title": "T"}).data["text"] is None
    assert api.put(path, {"text": "Text."}).data["text"] == "Text."
    assert api.put(path, {"text": ""}).data["text"] == ""
    assert api.put(path, {"text": None}).data["text"] is None
    assert api.post("/api/posts", {"must": "x", "text": None}).data["text"] is None
