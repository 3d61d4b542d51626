"""Tests of the serializer for query strings whose keys and values a client chose."""

import tracemalloc
from typing import Any

import pytest

from server.errors import ValidationError
from server.query import qs
from server.query.serialize import query_string, untrusted_query_string


def _nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = {"a": value}
    return value


@pytest.mark.parametrize(
    "params",
    [
        {"filters": {"title": {"$in": ["a b", "é", "%5B"]}}, "populate": "*", "at": ""},
        {"filters": {"$or": [{"a": {"$null": "true"}}, {"b.c": "1"}]}},
        {"sort": ["title:desc"], "fields": []},
    ],
)
def test_ordinary_queries_are_written_as_for_trusted_values(params: dict[str, Any]) -> None:
    assert untrusted_query_string(params) == query_string(params)
    expected = {name: value for name, value in params.items() if value != []}
    assert qs.parse(untrusted_query_string(params)) == expected


@pytest.mark.parametrize("key", ["id]=1&locale=fr&x[y", "a][$eq", "a+b", "50%", "‮", "&", "a=b", "\U0001f30a"])
def test_keys_stay_keys(key: str) -> None:
    text = untrusted_query_string({"filters": {key: "1"}})
    assert text.isascii()
    [(found, value)] = qs.parse(text)["filters"].items()
    assert value == "1"
    assert found == key.replace("[", "%5B").replace("]", "%5D")


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"K" * 35_000: [1] * 14_000}, "32768 characters"),
        ({"K" * 3000: {"L" * 3000: [{"a": 1, "b": []}] * 5000}}, "32768 characters"),
        ([[]] * 14_000, "1000 parameters"),
        ("x" * 32_769, "32768 characters"),
        ({"a": [1] * 1001}, "1000 parameters"),
        (_nested(22), "20 levels deep"),
        (_nested(900), "20 levels deep"),
    ],
)
def test_large_queries_are_rejected_before_they_are_written(value: Any, says: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(ValidationError, match=says):
            untrusted_query_string({"filters": value})
        assert tracemalloc.get_traced_memory()[1] < 500_000
    finally:
        tracemalloc.stop()


def test_the_deepest_query_that_the_parser_accepts_is_written() -> None:
    params = {"filters": _nested(20)}
    assert qs.parse(untrusted_query_string(params)) == params
    with pytest.raises(ValidationError):
        untrusted_query_string({"filters": _nested(21)})
