"""Bracket notation: valid queries become nested values, and ambiguous queries are rejected."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qs_codec import DecodeOptions, decode

from server.errors import ValidationError
from server.query import qs
from server.query.brackets import MAX_LIST_ITEMS
from tests.sites import bracketed
from tests.waiting import computing_less_than


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", {}),
        ("&&&", {}),
        ("a=1", {"a": "1"}),
        ("a[b][c]=1", {"a": {"b": {"c": "1"}}}),
        ("a%5Bb%5D%5bc%5d=1", {"a": {"b": {"c": "1"}}}),
        ("a[]=1&a[]=2", {"a": ["1", "2"]}),
        ("a[1]=x&a[0]=y", {"a": ["y", "x"]}),
        ("a=1&a=2", {"a": ["1", "2"]}),
        ("a=x+y%20z", {"a": "x y z"}),
        ("a=1%2B1", {"a": "1+1"}),
        ("a", {"a": None}),
        ("a=", {"a": ""}),
        ("a=b=c", {"a": "b=c"}),
        ("a=%C3%A9", {"a": "é"}),
        ("a[b]=1&a[c]=2", {"a": {"b": "1", "c": "2"}}),
        ("populate[]=", {"populate": [""]}),
        ("0[]&0[]", {"0": [None, None]}),
    ],
)
def test_queries_of_clients_are_nested(text: str, wanted: Any) -> None:
    assert qs.parse(text) == wanted


def test_numeric_keys_come_first_as_in_javascript() -> None:
    assert list(qs.parse("a[name]=x&a[2]=y&a[0]=z&a[10]=w")["a"]) == ["0", "2", "10", "name"]
    inner = qs.parse("b=1&a[c][x]=1&a[c][3]=2")
    assert (list(inner), list(inner["a"]["c"])) == (["b", "a"], ["3", "x"])


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("a=%zz", "percent"),
        ("a=%4", "percent"),
        ("a=100%", "percent"),
        ("a=%ff%fe", "UTF-8"),
        ("a=x%00y", "control"),
        ("%07=x", "control"),
        ("a=%7F", "control"),
        ("[" * 10_000, "nested"),
        ("a" + "[b]" * 21 + "=1", "nested"),
        ("%5b" * 30, "nested"),
        ("&".join(f"a{i}=1" for i in range(1001)), "parameters"),
        ("a=" + "x" * 40_000, "characters"),
    ],
)
def test_invalid_queries_are_refused(text: str, what: str) -> None:
    with pytest.raises(ValidationError, match=what):
        qs.parse(text)


@pytest.mark.parametrize("text", ["[", "]", "a[", "a]=1", "[]=1", "a[b=1", "a[[b]]=1", "=", "=1", "[a]=1"])
def test_odd_brackets_do_not_fail(text: str) -> None:
    assert isinstance(qs.parse(text), dict)


def test_twenty_levels_are_accepted() -> None:
    found: Any = qs.parse("a" + "[b]" * 20 + "=1")
    for _ in range(20):
        found = found["a" if "a" in found else "b"]
    assert found == {"b": "1"}


def test_a_list_may_have_gaps_or_many_items() -> None:
    assert qs.items(qs.parse("a[5]=x&a[9]=y")["a"]) == ["x", "y"]
    many = qs.parse("&".join(f"a[{i}]={i}" for i in range(150)))["a"]
    assert qs.is_list(many)
    assert qs.items(many) == [str(i) for i in range(150)]
    assert qs.items(qs.parse("&".join("a[]=x" for _ in range(150)))["a"]) == ["x"] * 150


def test_an_index_of_thousands_of_digits_is_an_ordinary_key() -> None:
    value = qs.parse(f"a[{'9' * 5000}]=x&a[1]=y")["a"]
    assert not qs.is_list(value)


def test_an_object_is_not_a_list() -> None:
    assert not qs.is_list({})
    assert not qs.is_list({"a": "1", "0": "2"})
    assert not qs.is_list({"²": "x"})


keys = st.text("abcXYZ_$é*-", min_size=1, max_size=4)
texts = st.text(st.characters(exclude_categories=["Cc", "Cs"]), max_size=8)
objects = st.recursive(
    texts | st.lists(texts, min_size=1, max_size=3),
    lambda inner: st.dictionaries(keys, inner, min_size=1, max_size=3).flatmap(
        lambda made: st.just(made) | st.just([made])
    ),
    max_leaves=12,
)


@given(given=st.dictionaries(keys, objects, max_size=4), encoded=st.booleans())
def test_written_queries_parse_to_the_same_values(given: dict[str, Any], encoded: bool) -> None:
    assert qs.parse(bracketed(given, encoded=encoded)) == given


@given(st.text("[]=&%a05B$.", max_size=60))
def test_any_text_parses_or_is_refused(text: str) -> None:
    try:
        found = qs.parse(text)
    except ValidationError:
        return
    assert isinstance(found, dict)


OPTIONS = DecodeOptions(list_limit=MAX_LIST_ITEMS, strict_null_handling=True)
REPEATED = ("a", "a[]", "a[b]", "a[b][]", "a[0][b]", "a[][b]", "%61%5B%5D", "a+b[c]", "é", "filters[id][$in]")


@pytest.mark.parametrize("key", REPEATED)
@pytest.mark.parametrize("value", ["=1", "=", "", "=a%26b"])
def test_an_often_repeated_key_means_the_same(key: str, value: str) -> None:
    text = "&".join([key + value] * 900) + "&other=x"
    assert qs.parse(text) == decode(text, OPTIONS)


def test_an_often_repeated_key_is_parsed_quickly() -> None:
    with computing_less_than(0.12):  # The library takes 0.2 s.
        qs.parse("&".join(["a=1"] * 1000))
