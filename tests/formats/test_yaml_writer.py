"""Tests of writing YAML: every parser reads the same value, and the style is the one that people use."""

import io
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML, events
from ruamel.yaml.emitter import Emitter

from server.formats.edits import is_same_value
from server.formats.tree import Plain
from server.formats.yaml.reader import read_yaml
from server.formats.yaml.writer import ESCAPED, _Emitter, _scalar, _write, yaml_entry, yaml_mapping
from tests.waiting import computing_less_than

WORDS = [
    "no",
    "y",
    "~",
    "null",
    "1.10",
    "2024-01-01",
    "01",
    "1e3",
    "a: b",
    "a #b",
    "- a",
    "*a",
    "&a",
    "!a",
    "@a",
]
WORDS += [
    "",
    " a",
    "a ",
    "a:",
    ":a",
    "#a",
    "'a'",
    '"a"',
    "[a]",
    "{a}",
    "a, b",
    "é – ☃",
    "𝄞",
    "%a",
    "|",
    ">",
    "?a",
]
WORDS += [
    "a\nb",
    "a\tb",
    "\a",
    "=",
    "<<",
    "---",
    "...",
    "0x1f",
    "12:30",
    "-",
    "?",
    ":",
    "\\",
    "a\\b",
    "`a`",
    "a" * 300,
]
PLAIN = [
    "2024-02-29",
    "2024-02-29T10:20:30.123Z",
    "10:20:30.500",
    "12",
    "1.50",
    "null",
    "true",
    "1e400",
    "a:",
    "-1",
]
text = st.sampled_from(WORDS) | st.text(max_size=12)
scalar = st.none() | st.booleans() | st.integers() | text | st.sampled_from(PLAIN).map(Plain)
value = st.recursive(
    scalar, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3), max_leaves=8
)


@given(text, value, st.sampled_from([0, 1, 2, 4]), st.booleans())
def test_a_value_reads_back(key: str, value: Any, offset: int, flow: bool) -> None:
    entry = yaml_entry(key, value, offset=offset, flow=flow)
    assert entry.endswith("\n")
    assert is_same_value(read_yaml(entry), {key: value})


characters = st.sampled_from(
    [*"ab éX.-,:#?[]{}&*!|>'\"%@`\\~=", *"\n\n\t\r\0\x7f\x85\xa0\u2000\u2028\ufeff\uffff𝄞"]
)
longer = st.lists(characters | st.sampled_from(["some words", "a, b"]), max_size=12).map("".join)
STYLES = ["", "'", '"', "|"]
STEPS = {
    "block": (events.SequenceStartEvent(None, None, True, flow_style=False), events.SequenceEndEvent()),
    "flow": (events.SequenceStartEvent(None, None, True, flow_style=True), events.SequenceEndEvent()),
}


@given(
    st.lists(st.tuples(longer, st.sampled_from(STYLES)), max_size=3),
    st.tuples(longer, st.sampled_from(STYLES)),
    st.sampled_from(sorted(STEPS)),
    st.sampled_from([20, 1_000_000]),
)
def test_texts_are_written_as_the_library_writes_them(
    texts: list[tuple[str, str]], last: tuple[str, str], kind: str, width: int
) -> None:
    begin, end = STEPS[kind]
    scalars = [_scalar("k", ""), begin, *(_scalar(*pair) for pair in texts), end]
    scalars += [event for pair in (*texts, last) for event in (_scalar(*pair), _scalar(*pair))]
    made = []
    for emitter in (_Emitter, Library):
        out = io.StringIO()
        _write(emitter(out, width=width, allow_unicode=True), scalars, 2)
        made.append(out.getvalue())
    assert made[0] == made[1]


@pytest.mark.parametrize("part", ["{", "x, ", "% ", "'"])
def test_a_long_text_with_indicators_is_written_quickly(part: str) -> None:
    long = "{{" + part * (14_000_000 // len(part))
    with computing_less_than(3):
        entry = yaml_entry("text", long)
    assert len(entry) > 14_000_000


@pytest.mark.parametrize("char", ["\n", "\x01", '"'], ids=["newlines", "control characters", "quotes"])
def test_escaping_calls_no_function_for_each_character(char: str) -> None:
    calls = Counter[str]()

    def count(frame: FrameType, event: str, _: object) -> None:
        calls[event] += 1

    text = f"\x01{char * 10_000}"
    yaml_entry("text", text)
    sys.setprofile(count)
    try:
        entry = yaml_entry("text", text)
    finally:
        sys.setprofile(None)
    assert read_yaml(entry) == {"text": text}
    assert calls.total() < 5000


class Library(Emitter):
    use_version = (1, 2)


@given(st.dictionaries(text, value, max_size=4))
def test_a_mapping_is_its_entries(values: dict[str, Any]) -> None:
    assert yaml_mapping(values) == "".join(yaml_entry(key, item) for key, item in values.items())


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("flow", [False, True])
def test_a_word_is_that_word_to_every_reader(word: str, flow: bool) -> None:
    entry = yaml_entry("key", [word, {word: word}], flow=flow)
    expected = {"key": [word, {word: word}]}
    assert read_yaml(entry) == expected
    assert yaml.safe_load(entry) == expected
    assert YAML(typ="safe", pure=True).load(entry) == expected


WRITTEN = {
    "nested": (
        {
            "title": "It is high: water",
            "tags": ["sea", "salt"],
            "seo": {"on": Plain("2024-01-01"), "count": 1},
        },
        {},
        "key:\n  title: 'It is high: water'\n  tags:\n    - sea\n    - salt\n"
        "  seo:\n    'on': 2024-01-01\n    count: 1\n",
    ),
    "dashes below the key": (
        ["a", ["b"], {"c": "d", "e": ["f"]}],
        {"offset": 0},
        "key:\n- a\n- - b\n- c: d\n  e:\n  - f\n",
    ),
    "in brackets": (["a", "b, c", {"d": 1}], {"flow": True}, "key: [a, 'b, c', {d: 1}]\n"),
    "nothing": ({"a": [], "b": {}, "c": None, "d": ""}, {}, "key:\n  a: []\n  b: {}\n  c: null\n  d: ''\n"),
    "lines": ("one\n\ntwo: x\n", {}, "key: |\n  one\n\n  two: x\n"),
    "lines without a last newline": ("one\ntwo", {}, "key: |-\n  one\n  two\n"),
    "lines on one": ("one\ntwo", {"quote": ESCAPED}, 'key: "one\\ntwo"\n'),
    "single quotes stay": ("sea", {"quote": "'"}, "key: 'sea'\n"),
    "double quotes stay": ("sea", {"quote": '"'}, 'key: "sea"\n'),
    "an apostrophe": ("it's: so", {}, 'key: "it\'s: so"\n'),
    "a long line is not wrapped": ("word " * 100 + "end", {}, f"key: {'word ' * 100}end\n"),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_values_are_written_as_people_write_them(name: str) -> None:
    value, options, expected = WRITTEN[name]
    assert yaml_entry("key", value, **options) == expected
