"""Patterns in schemas: JavaScript's syntax is supported, and no pattern takes long to match."""

from typing import Any

import pytest

from server.schema import patterns
from tests.conftest import MakeApi
from tests.sites import collection, documents


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^a+$", "aaa", "ab"),
        (r"^\p{L}+$", "Élan", "a1"),
        (r"(?<year>\d{4})-\d\d", "2024-05", "24-05"),
        (r"^[^\s]+$", "one", "one two"),
    ],
)
def test_a_pattern_of_a_schema_decides_what_may_be_written(
    make_api: MakeApi, pattern: str, good: str, bad: str
) -> None:

    code: dict[str, Any] = {"type": "string", "regex": pattern}
    api = make_api({**collection("item", {"code": code}), **documents("items", a={})})
    assert api.put("/api/items/a", {"code": good}).data["code"] == good
    assert api.put("/api/items/a", {"code": bad}).error["details"]["errors"][0]["path"] == ["code"]


def test_a_pattern_that_is_none_says_why() -> None:
    assert patterns.fault("(") != ""
    assert patterns.fault("a{2}") == ""


def test_a_pattern_that_never_ends_is_given_up() -> None:
    assert "takes too long" in patterns.pattern_error("^(a|aa)+$", "a" * 5000 + "b")


@pytest.mark.parametrize(
    ("field", "value"),
    [("plugin::color-picker.color", "#fff"), ("plugin::unknown.thing", {"any": ["thing"]})],
)
def test_a_custom_field_is_taken_as_what_it_holds(make_api: MakeApi, field: str, value: Any) -> None:
    attribute = {"type": "customField", "customField": field, "options": {"format": "hex"}}
    api = make_api({**collection("item", {"extra": attribute}), **documents("items", a={"extra": value})})
    assert api.get("/api/items/a").data["extra"] == value
    assert api.put("/api/items/a", {"extra": value}).status == 200
