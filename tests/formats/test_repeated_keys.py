"""Tests of repeated keys in files from a static site generator: the last value counts, and no other byte is
lost.
"""

import pytest

from server.errors import ConflictError
from server.formats.edits import REMOVE
from server.formats.text_positions import DuplicateKey
from server.formats.tree import SyntaxProblem
from server.storage.document_text import change_text, drop_repeated_keys
from server.storage.read import parse, positions_of

YAML = "a: 1  # one\nb: x\na:\n  - 2\n  - 3\nc: y\n"
TOML = 'a = 1  # one\nb = "x"\na = [2, 3]\nc = "y"\n[t]\nd = 1\nd = 2\n'

# A file's path, text, values and repeated keys: (path, line, column, last line).
CASES = {
    "yaml": ("a.yaml", YAML, {"a": ["2", "3"], "b": "x", "c": "y"}, [(("a",), 1, 1, 3)]),
    "front matter": (
        "a.md",
        f"---\n{YAML}---\n\nText\n",
        {"a": ["2", "3"], "b": "x", "c": "y"},
        [(("a",), 2, 1, 4)],
    ),
    "byte order mark": ("a.md", "\ufeff---\r\na: 1\r\na: 2\r\n---\r\n", {"a": "2"}, [(("a",), 2, 1, 3)]),
    "nested": (
        "a.yaml",
        "l:\n  - x: 1\n    x: 2\nm: {y: 1, y: 2, z: 3}\n",
        {"l": [{"x": "2"}], "m": {"y": "2", "z": "3"}},
        [(("l", 0, "x"), 2, 5, 3), (("m", "y"), 4, 5, 4)],
    ),
    "three times": ("a.yaml", "a: 1\na: 2\na: 3\n", {"a": "3"}, [(("a",), 1, 1, 2), (("a",), 2, 1, 3)]),
    "a mapping, then text": ("a.yaml", "a:\n  b: 1\na: t\n", {"a": "t"}, [(("a",), 1, 1, 3)]),
    "toml": (
        "a.toml",
        TOML,
        {"a": [2, 3], "b": "x", "c": "y", "t": {"d": 2}},
        [(("a",), 1, 1, 3), (("t", "d"), 6, 1, 7)],
    ),
    "toml without a last newline": ("a.toml", "a = 1\na = 2", {"a": 2}, [(("a",), 1, 1, 2)]),
    "toml between plus signs": (
        "a.md",
        '+++\na = """\none\n"""\na = 2024-01-02\n+++\n',
        {"a": "2024-01-02"},
        [(("a",), 2, 1, 5)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_last_value_counts_and_both_lines_are_known(name: str) -> None:
    path, text, said, expected = CASES[name]
    found: list[DuplicateKey] = []
    assert parse(path, text, None, None, found) == said
    assert [(key.path, key.line, key.column, key.last_line) for key in found] == expected
    positions = positions_of(path, text)
    lasts = {key.path: key.last_line for key in found}
    assert {at: positions[at].line for at in lasts} == lasts
    assert not any(at[:1] == ("a",) and len(at) > 1 for at in positions if said.get("a") == "t")


@pytest.mark.parametrize("name", CASES)
def test_a_change_elsewhere_keeps_every_byte_and_one_of_the_key_changes_the_last_value(name: str) -> None:
    path, text, said, expected = CASES[name]
    added = change_text(path, text, None, {"new": "n"})
    removed = [line for line in text.splitlines() if line not in added.splitlines()]
    assert not removed
    assert parse(path, added, None) == {**said, "new": "n"}
    key = str(expected[0][0][0])
    changed = change_text(path, text, None, {key: "v"})
    assert parse(path, changed, None) == {**said, key: "v"}
    if len(expected[0][0]) == 1 and len(expected) == 1:
        assert changed.splitlines()[expected[0][1] - 1] == text.splitlines()[expected[0][1] - 1]
    gone = change_text(path, text, None, {key: REMOVE})
    assert parse(path, gone, None) == {k: v for k, v in said.items() if k != key}


@pytest.mark.parametrize("name", CASES)
def test_dropping_the_repeated_keys_keeps_what_the_file_says(name: str) -> None:
    path, text, said, expected = CASES[name]
    made = drop_repeated_keys(path, text, {at for at, *_ in expected})
    left: list[DuplicateKey] = []
    assert parse(path, made, None, None, left) == said
    assert not left


def test_only_the_lines_of_the_earlier_value_go() -> None:
    assert drop_repeated_keys("a.yaml", YAML, {("a",)}) == YAML.partition("\n")[2]
    assert drop_repeated_keys("a.yaml", "l:\n  - x: 1\n    x: 2\n", {("l", 0, "x")}) == "l:\n  - x: 2\n"
    assert drop_repeated_keys("a.yaml", "m: {y: 1, y: 2, z: 3}\n", {("m", "y")}) == "m: {y: 2, z: 3}\n"
    assert drop_repeated_keys("a.toml", TOML, {("t", "d")}) == TOML.replace("d = 1\n", "")


def test_a_value_that_others_refer_to_is_not_dropped() -> None:
    text = "a: &x 1\na: 2\nb: *x\n"
    assert parse("a.yaml", text, None) == {"a": "2", "b": "1"}
    with pytest.raises(ConflictError):
        drop_repeated_keys("a.yaml", text, {("a",)})
    assert change_text("a.yaml", text, None, {"c": 1}) == text + "c: 1\n"


@pytest.mark.parametrize(
    "text", ["a = 1\n[a]\nb = 2\n", "a = {b = 1, b = 2}\n", "a = 1\na = \n", "[a]\n[a]\n", "a.b = 1\na = 2\n"]
)
def test_other_toml_that_is_refused_stays_refused(text: str) -> None:
    with pytest.raises(SyntaxProblem):
        parse("a.toml", text, None)
