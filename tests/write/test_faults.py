"""Errors for a request body: as in Strapi, in the order of the schema, with the invalid values."""

from typing import Any

import pytest

from tests.conftest import MakeApi
from tests.sites import INTEGER, STRING, Api, collection, component, documents

FILES = {
    **collection(
        "item",
        {
            "title": {**STRING, "required": True, "minLength": 2},
            "code": {**STRING, "unique": True},
            "count": {**INTEGER, "max": 9},
            "ratio": {"type": "float", "max": 2},
            "kind": {"type": "enumeration", "enum": ["a", "b"]},
            "big": {"type": "biginteger"},
            "secret": {"type": "password", "minLength": 4},
            "parts": {"type": "component", "component": "c.part", "repeatable": True, "max": 2},
            "zone": {"type": "dynamiczone", "components": ["c.part"]},
            "body": {"type": "blocks"},
        },
    ),
    **component("c.part", {"label": {**STRING, "required": True}, "key": {**STRING, "unique": True}}),
    **documents("items", first={"title": "First", "code": "x"}),
}
UNIQUE = "This attribute must be unique"


@pytest.fixture
def api(make_api: MakeApi) -> Api:
    return make_api(FILES)


def told(api: Api, data: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """Return the path, message and value of each error for a body. If an error has no value, `...` stands for
    it.
    """
    answer = api.post("/api/items", data)
    assert answer.status == 400, answer.body
    error = answer.body["error"]
    errors = error["details"]["errors"]
    assert {entry["name"] for entry in errors} == {error["name"]} == {"ValidationError"}
    assert error["message"] == (
        errors[0]["message"] if len(errors) == 1 else f"{len(errors)} errors occurred"
    )
    return [(".".join(entry["path"]), entry["message"], entry.get("value", ...)) for entry in errors]


def test_every_mistake_is_told_in_the_order_of_the_schema(api: Api) -> None:
    data = {"zone": [{"__component": "c.part"}], "kind": "c", "ratio": "3.5", "code": "x", "title": "o"}
    assert told(api, {**data, "parts": [{"label": "l", "key": "k"}, {"label": "m", "key": "k"}]}) == [
        ("title", "title must be at least 2 characters", "o"),
        ("code", UNIQUE, "x"),
        ("ratio", "ratio must be less than or equal to 2", 3.5),
        ("kind", "kind must be one of the following values: a, b, ", "c"),
        ("parts.0.key", UNIQUE, "k"),
        ("parts.1.key", UNIQUE, "k"),
        ("zone.0.label", "zone[0].label must be defined.", ...),
    ]


@pytest.mark.parametrize(
    ("data", "path", "message", "value"),
    [
        ({"title": None}, "title", "title must be defined.", None),
        ({"title": {"a": 1.5}}, "title", "title must be a string", {"a": 1.5}),
        ({"count": 1.5}, "count", "count must be an integer", 1.5),
        ({"count": "1.5"}, "count", "count must be an integer", 1.5),
        ({"count": "12"}, "count", "count must be less than or equal to 9", 12),
        ({"big": "x"}, "big", "big must be a valid integer", "x"),
        ({"big": 1.5}, "big", "big must be a valid integer", 1.5),
        ({"big": [1]}, "big", "big must be a valid integer", [1]),
        ({"kind": -1}, "kind", "kind must be one of the following values: a, b, ", "-1"),
        ({"kind": True}, "kind", "kind must be one of the following values: a, b, ", "true"),
        ({"parts": [{"label": "a"}] * 3}, "parts", "parts field must have less than or equal to 2 items",
         [{"label": "a"}] * 3),
        ({"parts": ["x"]}, "parts.0", "parts[0] must be an object", "x"),
        ({"zone": [{}]}, "zone.0.__component", "zone[0].__component is a required field", ...),
    ],
)  # fmt: skip
def test_an_error_quotes_the_value_as_it_was_sent(
    api: Api, data: dict[str, Any], path: str, message: str, value: Any
) -> None:
    assert told(api, {"title": "Second", **data}) == [(path, message, value)]


@pytest.mark.parametrize("sent", [9.01, "9.01"])
def test_a_fraction_for_an_integer_is_held_against_its_bounds_too(api: Api, sent: Any) -> None:
    assert told(api, {"title": "Second", "count": sent}) == [
        ("count", "count must be an integer", 9.01),
        ("count", "count must be less than or equal to 9", 9.01),
    ]


def test_a_long_value_is_not_quoted_whole(api: Api) -> None:
    [(_, _, value)] = told(api, {"title": "Second", "count": "x" * 5000})
    assert value == "x" * 2000
    [(_, _, value)] = told(api, {"title": list(range(1000))})
    assert value == "a list"


def test_a_password_is_not_quoted(api: Api) -> None:
    answer = api.post("/api/items", {"title": "Second", "secret": "abc"})
    assert answer.body["error"]["details"]["errors"][0]["value"] is None
    assert b"abc" not in answer.raw


def test_what_a_body_does_not_say_is_quoted_from_what_is_stored(make_api: MakeApi) -> None:
    files = collection("note", {"count": {**INTEGER, "min": 1}, "title": STRING}, drafts=True)
    api = make_api({**files, "content/notes/a.draft.json": '{"count": 0}'})
    error = api.put("/api/notes/a", {"title": "Published"}).body["error"]
    assert [(entry["path"], entry["value"]) for entry in error["details"]["errors"]] == [(["count"], 0)]
