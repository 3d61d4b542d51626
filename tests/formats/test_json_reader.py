"""Tests of parsing JSON into a tree: numbers are exact, and errors contain the line."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats.json import (
    SHORT_CHARS,
    count_values,
    count_values_of_string,
    read_json,
    read_json_with_comments,
)
from server.formats.tree import MAX_DIGITS, Plain, SyntaxProblem, resolve_plain_values
from tests.waiting import computing_less_than

JSON_VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(st.characters(blacklist_categories=("Cs",)), max_size=10),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=15,
)


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 2, "\t"]))
def test_json_means_what_it_says(value: Any, ascii_: bool, indent: int | str | None) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent)
    found = resolve_plain_values(read_json(text))
    assert found == value
    assert json.dumps(found) == json.dumps(value)


@given(JSON_VALUES, st.sampled_from([None, 2]), st.sampled_from(["// b, ]\n", '/* "b", } */', " \t", ""]))
def test_comments_and_trailing_commas_are_skipped(value: Any, indent: int | None, comment: str) -> None:
    text = json.dumps({"a": [value, "// c", "/* c */,]"]}, indent=indent)
    commented = f"{comment}{text[:-1]}{comment},{comment}}}{comment}"
    assert resolve_plain_values(read_json_with_comments(commented)) == resolve_plain_values(read_json(text))


def test_json_keeps_digits() -> None:
    assert read_json('{"a": 1.10, "b": 123456789012345678901234567890}') == {
        "a": "1.10",
        "b": 123456789012345678901234567890,
    }
    assert type(read_json("1.10")) is Plain
    assert type(read_json('"1.10"')) is str


BAD_JSON = {
    "a comma too many": ('{\n"a": 1,\n}', "invalid JSON: a comma before the end of the object", 2),
    "a comma too many in a list": ('{"a": [1, 2\n,\n]}', "a comma before the end of the list", 2),
    "two commas": ('{"a": [1,\n, 2]}', "invalid JSON: expected a value", 2),
    "nothing": ("", "invalid JSON: expected a value", 1),
    "a comment": ('{\n// c\n"a": 1}', "invalid JSON", 2),
    "two values": ("{}\n{}", "invalid JSON: unexpected characters after the value", 2),
    "NaN": ('{"a": NaN}', "NaN is not allowed in JSON", 1),
    "Infinity": ('{"NaN": "\\" Infinity",\n "a": -Infinity}', "-Infinity is not allowed in JSON", 2),
    "a key twice": ('{"a": 1,\n"b": {"c": 1,\n\t"c": 2}}', 'the key "c" occurs twice', 3),
    "half of a pair": ('{"a": "\\ud83d"}', "half of a surrogate pair", None),
    "too many digits": (
        f'{{"a":\n{"9" * 10_000}}}',
        f"a number must not have more than {MAX_DIGITS} digits",
        2,
    ),
    "depth": ("[" * 100_000, "the values are nested too deeply", None),
    "depth that ends": ("[" * 500 + "]" * 500, "nested more than 64 levels deep", None),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_what_is_no_json_is_refused(name: str) -> None:
    text, message, line = BAD_JSON[name]
    with pytest.raises(SyntaxProblem) as caught:
        read_json(text)
    assert message in caught.value.message
    assert caught.value.line == line


def values_in(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values_in, inner))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab,[{:"\\ \x00'),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('a,[{"\\'), inner),
)


@given(_JSON, st.booleans(), st.sampled_from([None, 1]))
def test_the_values_of_json_are_counted_before_it_is_read(
    value: Any, ascii_: bool, indent: int | None
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent)
    assert count_values(text, values_in(value)) == values_in(value)
    assert values_in(value) == 1 or count_values(text, values_in(value) - 1) == values_in(value)


STRINGS = [
    "a, b, c, d and [e]",
    "[1, 1, 1, 1]",
    '{"a": [1, 2, 3]}',
    "{{ fog }}, {{ sea }}, {{ tide }}",
    "\u2028\u2028\u2028\u2028",
    '\\", [1, 1, 1, 1] \\\\',
]


@pytest.mark.parametrize("string", STRINGS)
@pytest.mark.parametrize("ascii_", [True, False])
def test_a_string_is_one_value_whatever_it_says(string: str, ascii_: bool) -> None:
    assert count_values(json.dumps(string, ensure_ascii=ascii_), 3) == 1
    assert count_values(json.dumps({string: [string]}, ensure_ascii=ascii_), 3) == 3


@pytest.mark.parametrize("text", ["[[], {}]", "[ [ ], { } ]"])
def test_empty_lists_and_objects_are_values(text: str) -> None:
    assert count_values(text, 10) == 3


def test_counting_ends_at_the_first_value_too_many() -> None:
    assert count_values("[" * 1_000_000, 3) == 4
    assert count_values('"""""""",,,,', 3) == 4


@given(_JSON, st.booleans(), st.sampled_from([None, 1]), st.integers(1, 20))
def test_the_values_of_a_string_are_counted_if_it_is_json(
    value: Any, ascii_: bool, indent: int | None, most: int
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_, indent=indent)
    assert min(count_values_of_string(text, most), most + 1) == min(values_in(value), most + 1)


@pytest.mark.parametrize(
    "text", ["[a, b, c, d, e]", "{{ a, b, c, d }}", "[1] a, b, c, d", '{"a": b, c, d, e']
)
def test_a_string_that_only_begins_like_json_is_one_value(text: str) -> None:
    assert count_values_of_string(text, 3) == 1


LONG = ["It is a fog, ", "{{", '"', "\n", "\u2028", "\\", '"[1, 1]", ']


@pytest.mark.parametrize("part", LONG)
def test_a_long_string_is_counted_quickly(part: str) -> None:
    text = json.dumps({"data": "{{" + part * (14_000_000 // len(json.dumps(part)))})
    with computing_less_than(1):
        assert count_values(text, 50_000) == 2


@pytest.mark.parametrize("end", ["", ",", '"', "]"])
def test_text_that_is_never_closed_is_counted_at_once(end: str) -> None:
    with computing_less_than(2):
        assert count_values('["x' + '\\"' * 1_000_000 + "," * 100 + end, 50) <= 3


def test_a_key_that_stands_twice_among_many_is_found_at_once() -> None:
    keys = ",".join(f'"k{i}":0' for i in range(40_000))
    with computing_less_than(2), pytest.raises(SyntaxProblem, match='"k39999" occurs twice'):
        read_json(f'{{{keys},"k39999":0}}')


@given(st.lists(st.sampled_from([*'"\\[]{},: \n\xa0x1', '"a"', "[]", "{ }"]), max_size=60).map("".join))
def test_short_and_long_texts_are_counted_alike(text: str) -> None:
    assert count_values(text, math.inf) == count_values(text + " " * SHORT_CHARS, math.inf)
