"""Tests with files as people write them (tests/formats/corpus/): a change affects only its own lines."""

import difflib
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from ruamel.yaml import YAML

from server.formats import frontmatter
from server.formats.edits import REMOVE, is_same_value
from server.formats.json import read_json
from server.formats.tree import Plain, SyntaxProblem
from server.formats.yaml.reader import read_yaml
from server.storage.document_text import change_text
from server.storage.read import parse

CORPUS = Path(__file__).parent / "corpus"
FILES = sorted(path.name for path in CORPUS.iterdir() if not path.name.startswith("."))
VALUES: list[Any] = [
    "text",
    "NO",
    "a: b # c",
    "two\nlines",
    "",
    None,
    7,
    True,
    ["x", "y: z"],
    {"k": ["v"]},
    [],
]
BODY = "body"


def text_of(name: str) -> str:
    return (CORPUS / name).read_bytes().decode()


def tree_of(name: str, text: str) -> dict[str, Any]:
    return parse(name, text.removeprefix("\ufeff"), BODY)


def comments(text: str) -> list[str]:
    return re.findall(r"(?m)^\s*#[^\r\n]*", text)


def removed_lines(before: str, after: str) -> list[str]:
    diff = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line[2:] for line in diff if line.startswith("- ")]


def test_there_are_enough() -> None:
    assert len(FILES) >= 64


@pytest.mark.parametrize("name", FILES)
def test_changing_nothing_changes_no_byte(name: str) -> None:
    text = text_of(name)
    assert change_text(name, text, BODY, {}) == text
    tree = tree_of(name, text)
    plain = {key: value for key, value in tree.items() if isinstance(value, str) and type(value) is not Plain}
    assert change_text(name, text, BODY, plain) == text


@pytest.mark.parametrize("name", FILES)
def test_a_changed_key_says_the_new_value_and_all_others_the_old(name: str) -> None:
    text = text_of(name)
    before = tree_of(name, text)
    for key in [*before, "added"]:
        for value in VALUES:
            if key == BODY and not isinstance(value, str | None):
                continue
            after = tree_of(name, change_text(name, text, BODY, {key: value}))
            assert is_same_value(after.get(key), value), (key, value)
            assert {k: v for k, v in after.items() if k != key} == {
                k: v for k, v in before.items() if k != key
            }


@pytest.mark.parametrize("name", FILES)
def test_a_key_can_be_taken_out(name: str) -> None:
    text = text_of(name)
    before = tree_of(name, text)
    shared = "&" in text or "<<" in text
    for key in before:
        after = tree_of(name, change_text(name, text, BODY, {key: REMOVE}))
        assert key not in after
        assert shared or {**after, key: before[key]} == before


@pytest.mark.parametrize("name", [n for n in FILES if "count" in text_of(n) and not n.startswith("flow.y")])
def test_one_number_changes_one_line(name: str) -> None:
    text = text_of(name)
    made = change_text(name, text, BODY, {"count": 4})
    gone = removed_lines(text, made)
    assert len(gone) == 1, gone
    assert "count" in gone[0]
    assert made.count("\r\n") == text.count("\r\n")
    assert made.endswith("\n") == text.endswith("\n")
    assert made.startswith("\ufeff") == text.startswith("\ufeff")


@pytest.mark.parametrize("name", [n for n in FILES if n.endswith(".md")])
def test_comments_and_body_survive_changes_of_the_front_matter(name: str) -> None:
    text = text_of(name)
    matter, body = (
        frontmatter.split_front_matter(text.removeprefix("\ufeff")).front_matter,
        frontmatter.split_front_matter(text.removeprefix("\ufeff")).body,
    )
    for key in tree_of(name, text):
        if key != BODY:
            made = change_text(name, text, BODY, {key: "changed", "added": [1]})
            kept = frontmatter.split_front_matter(made.removeprefix("\ufeff"))
            assert kept.body == body
            if "literal" not in name and not isinstance(tree_of(name, text)[key], list | dict):
                assert [c for c in comments(matter) if c not in comments(kept.front_matter)] == []


TEXTS = [
    "NO",
    "1.10",
    "0x1F",
    "~",
    "2024-01-01",
    "12:30",
    "on",
    "y",
    "null",
    "",
    " x",
    "x:",
    "# x",
    "- a",
    "a\nb",
    "é\u2028",
    "\t",
    "=",
    "<<",
    "1e5",
    "0o7",
    ".inf",
    "@a",
    "`b`",
    "%c",
    "a: b",
    "x #y",
    "'",
    '"',
]


@pytest.mark.parametrize("value", TEXTS)
@pytest.mark.parametrize("flow", [False, True])
def test_text_stays_text_for_every_reader(value: str, flow: bool) -> None:
    text = "list: [a]\n" if flow else "key: x\n"
    key, new = ("list", [value]) if flow else ("key", value)
    made = change_text("a.yaml", text, None, {key: new})
    assert yaml.safe_load(made)[key] == new
    assert YAML(typ="safe", pure=True).load(made)[key] == new
    assert is_same_value(read_yaml(made)[key], new)


REFUSED = {
    "open.md": ("---\ntitle: x\n", "not closed", 1),
    "broken.md": ("---\ntitle: a: b\n---\n", "mapping values", 2),
    "toml.md": ("+++\ntitle = 'x'\nsub = y\n+++\n", "invalid TOML: Invalid value", 3),
    "twice.toml": ("a = 1\nb = 2\n[a]\nc = 3\n", "Cannot overwrite a value", 3),
    "open.toml": ("a = 1\nb = [\n", "invalid TOML", 3),
    "json.md": ('{"a": 1,\n"b" 2}\nBody\n', "invalid JSON", 2),
    "list.yaml": ("- a\n- b\n", "must be a mapping", 1),
    "two.yaml": ("a: 1\n---\nb: 2\n", "second YAML document", 2),
    "twice.json": ('{"a": 1, "a": 2}', "occurs twice", None),
    "comma.json": ('{\n"a": 1,\n}', "invalid JSON", 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_ambiguous_is_refused_with_its_line(name: str) -> None:
    text, what, line = REFUSED[name]
    with pytest.raises(SyntaxProblem, match=what) as caught:
        parse(name, text, BODY)
    if line:
        assert caught.value.line == line


@pytest.mark.parametrize(
    "value", [*TEXTS, 'a """ b\nc', 'a\n"', "a\r\nb", "a\\b\n", "+++\nx", "\x7f", "x\x00y"]
)
@pytest.mark.parametrize("text", ['key = "x"\n', "key = 'x'\n", "key = 1\n", ""])
def test_text_stays_text_in_toml(value: str, text: str) -> None:
    made = change_text("a.toml", text, None, {"key": value})
    assert tomllib.loads(made) == {"key": value}
    made = change_text("a.md", f"+++\n{text}+++\n", None, {"key": value, "list": [value]})
    assert parse("a.md", made, None) == {"key": value, "list": [value]}


def test_json_numbers_keep_their_digits() -> None:
    made = change_text("a.json", text_of("numbers.json"), None, {"count": 4})
    assert '"price": 1.10' in made
    assert '"big": 123456789012345678901234567890' in made
    assert read_json(made)["count"] == 4


def test_an_item_that_is_added_does_not_part_another_from_its_comment() -> None:
    text = "tags:\n  # about a\n  - a\n  - |\n    # no comment\n  - b # behind b\n"
    old = ["a", "# no comment\n", "b"]
    for at, line in ((0, "  # about a\n"), (2, "  - b # behind b\n")):
        made = change_text("a.yaml", text, None, {"tags": [*old[:at], "z", *old[at:]]})
        assert made == text.replace(line, f"  - z\n{line}")
