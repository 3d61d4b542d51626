"""What is written without ruamel.yaml is what ruamel.yaml writes, to the byte."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats import yaml_writer as emit
from server.formats.tree import Plain
from server.formats.yaml_reader import read_yaml
from server.formats.yaml_writer import yaml_entry

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


@given(text, value, st.sampled_from([0, 2]))
def test_the_short_way_and_the_long_way_write_the_same(key: str, value: Any, offset: int) -> None:
    assert yaml_entry(key, value, offset=offset) == emit._written_by_ruamel(key, value, offset, False, "")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_reads_back(word: str) -> None:
    entry = yaml_entry("key", [word, {word: word}])
    assert read_yaml(entry) == {"key": [word, {word: word}]}


def test_ordinary_content_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(emit, "YAML", None)
    said = {
        "title": "It is high: water",
        "tags": ["sea", "salt"],
        "seo": {"at": Plain("2024-01-01"), "count": 1},
    }
    lines = ["said:", "  title: 'It is high: water'", "  tags:", "    - sea", "    - salt"]
    lines += ["  seo:", "    at: 2024-01-01", "    count: 1"]
    assert yaml_entry("said", said) == "\n".join(lines) + "\n"
