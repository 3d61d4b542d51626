"""Tests of `reorder_keys`, which changes the order of keys in a schema and keeps comments."""

import pytest

from server.formats.reorder_keys import reorder_keys

JSON = '{\n  "attributes": {\n    "a": {"x": 1},\n    "b": [\n      2\n    ],\n    "c": 3\n  }\n}\n'
YAML = """\
# Ours.
attributes:
  # The first.
  a:
    type: string  # short
  b: {type: text}

  # The last.
  c:
    enum:
      - x
options: {}
"""


def test_json_keys_keep_their_text() -> None:
    made = reorder_keys("a.json", JSON, ("attributes",), ["c", "a", "b"])
    assert made == (
        '{\n  "attributes": {\n    "c": 3,\n    "a": {"x": 1},\n    "b": [\n      2\n    ]\n  }\n}\n'
    )


def test_yaml_keys_take_their_comments_along() -> None:
    assert (
        reorder_keys("a.yaml", YAML, ("attributes",), ["c", "b", "a"])
        == """\
# Ours.
attributes:
  # The last.
  c:
    enum:
      - x
  b: {type: text}

  # The first.
  a:
    type: string  # short
options: {}
"""
    )


def test_the_last_line_of_a_file_can_lack_a_line_break() -> None:
    assert reorder_keys("a.yml", "t:\n  a: 1\n  b: 2", ("t",), ["b", "a"]) == "t:\n  b: 2\n  a: 1\n"
    assert reorder_keys("a.yml", "t: {a: 1, b: 2}", ("t",), ["b", "a"]) == "t: {b: 2, a: 1}\n"


@pytest.mark.parametrize("names", [["a", "b"], ["a", "b", "b"], ["a", "b", "c", "d"]])
def test_names_must_be_those_of_all_keys(names: list[str]) -> None:
    assert reorder_keys("a.yaml", YAML, ("attributes",), names) is None
    assert reorder_keys("a.json", JSON, ("other",), names) is None
