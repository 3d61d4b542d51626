"""Tests that a file with an unresolved git conflict is rejected with the conflict's line, in every format."""

from pathlib import Path

import pytest

from server.formats.tree import SyntaxProblem
from server.storage.document_text import change_text, new_text
from server.storage.read import parse
from tests.sites import collection, make

OURS, SPLIT, THEIRS = "<<<<<<< HEAD\n", "=======\n", ">>>>>>> branch\n"
CONFLICT = f"{OURS}title: a\n{SPLIT}title: b\n{THEIRS}"
CONFLICTS = {
    "a.yaml": (f"x: 1\n{CONFLICT}", 2),
    "a.yml": (f"{CONFLICT}", 1),
    "a.json": (f'{{\n{OURS}  "a": 1\n{SPLIT}  "a": 2\n{THEIRS}}}\n', 2),
    "a.toml": (f"a = 1\n{OURS}b = 1\n{SPLIT}b = 2\n{THEIRS}", 2),
    "matter.md": (f"---\nx: 1\n{CONFLICT}---\n\nBody\n", 3),
    "toml.md": (f"+++\n{OURS}a = 1\n{SPLIT}a = 2\n{THEIRS}+++\nBody\n", 2),
    "fence.md": (f"---\nx: 1\n{OURS}---\na\n{SPLIT}y: 2\n---\nb\n{THEIRS}", 3),
    "unclosed.md": (f"---\nx: 1\n{OURS}y: 2\n{SPLIT}---\nb\n{THEIRS}", 3),
    "body.md": (f"---\nx: 1\n---\n\nText\n{OURS}one\n{SPLIT}two\n{THEIRS}", 6),
    "no-matter.md": (f"# Title\n{CONFLICT}", 2),
    "windows.md": (f"---\nx: 1\n---\nText\n{CONFLICT}".replace("\n", "\r\n"), 5),
    "three-way.md": (f"Text\n{OURS}a\n||||||| base\nc\n{SPLIT}b\n{THEIRS}", 2),
    "long.md": (f"Text\n{'<' * 12} a\n{CONFLICT.splitlines()[1]}\n{'=' * 12}\nb\n{'>' * 12} b\n", 2),
    "open-fence.md": (f"---\nx: 1\n---\n```\n{CONFLICT}", 5),
}


@pytest.mark.parametrize("name", CONFLICTS)
def test_a_conflict_is_refused_where_it_begins(name: str) -> None:
    text, line = CONFLICTS[name]
    with pytest.raises(SyntaxProblem, match="unresolved merge conflict") as caught:
        parse(name, text, "body")
    assert caught.value.line == line


@pytest.mark.parametrize(
    "body",
    [
        f"```\n{CONFLICT}```\nEnd",
        f"  ~~~~ diff\n~~~\n{CONFLICT}~~~~\n",
        "Title\n=======\n\n>>>>>>> quoted\n<<<<<<< x",
        "<<<<<<<\n=======\n>>>>>>>\n",
        "<<<<<<<< a\n=======\n>>>>>>> b\n",
        f"    {CONFLICT}".replace("\n", "\n    "),
    ],
)
def test_what_shows_a_conflict_is_none(body: str) -> None:
    assert parse("a.md", f"---\nx: 1\n---\n\n{body}\n", "body")["body"] == body


@pytest.mark.parametrize("path", ["a.md", "a.yaml", "a.json", "a.toml"])
def test_text_that_looks_like_a_conflict_can_be_written(path: str) -> None:
    text = f"Before\n{CONFLICT}After"
    assert parse(path, new_text(path, "body", {"x": "1", "body": text}), "body")["body"] == text
    made = change_text(path, new_text(path, "body", {"x": "1", "body": "old"}), "body", {"body": text})
    assert parse(path, made, "body")["body"] == text
    assert parse(path, new_text(path, "body", {"body": text}, "toml"), "body")["body"] == text


def test_the_last_good_version_stays_served(tmp_path: Path) -> None:
    files = {"content/notes/a.md": "---\ntitle: A\n---\n\nText\n"}
    api = make(tmp_path, {**collection("note", {"title": "string", "body": "richtext"}), **files})
    (tmp_path / "content/notes/a.md").write_text(f"---\ntitle: A\n---\n\n{OURS}Text\n{SPLIT}Other\n{THEIRS}")
    api.site.refresh()
    assert api.get("/api/notes/a").data["body"] == "Text"
    assert [(p.path, p.line, p.message) for p in api.site.problems] == [
        ("content/notes/a.md", 5, "unresolved merge conflict")
    ]


def test_settings_and_schemas_can_have_conflicts(tmp_path: Path) -> None:
    api = make(tmp_path, collection("note", {"title": "string"}))
    (tmp_path / "site.yaml").write_text(f"{OURS}name: a\n{SPLIT}name: b\n{THEIRS}")
    api.site.refresh()
    assert [(p.path, p.line, p.message) for p in api.site.problems] == [
        ("site.yaml", 1, "unresolved merge conflict")
    ]
