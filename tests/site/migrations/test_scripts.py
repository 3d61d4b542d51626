"""Tests of the migrations `split` and `script`."""

import json
from pathlib import Path

import pytest

from server.errors import ValidationError
from tests.site.migrations.helpers import apply, files, lacking, migrate
from tests.sites import STRING, collection, translated, write

SPLIT = """\
ATTRIBUTES = {"first": {"type": "string"}, "last": {"type": "string"}}

def split(value):
    first, _, last = value.rpartition(" ")
    return {"first": first, "last": last}
"""
SCRIPT = """\
ATTRIBUTES = {"words": {"type": "integer"}}

def migrate(document):
    if "words" in document:
        return None
    return {**document, "words": len(document.get("name", "").split())}
"""
FILES = {
    **collection("author", {"name": STRING, "age": {"type": "integer"}}),
    "content/authors/a.yaml": "name: Ann B Cole # who\nage: 3   # years\n",
    "content/authors/b.json": '{"age": 4}',
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def test_an_attribute_is_split(root: Path) -> None:
    migrate(root, "split", attribute="author.name", file="n.py", code=SPLIT)
    assert files(root)["content/authors/a.yaml"] == b"age: 3   # years\nfirst: Ann B\nlast: Cole\n"
    assert files(root)["content/authors/b.json"] == b'{"age": 4}'
    schema = json.loads(files(root)["content-types/author.json"])
    assert list(schema["attributes"]) == ["age", "first", "last"]
    write(root, {"content/authors/late.yaml": "name: L M\n"})
    assert lacking(root) == {"0001-split-author-name": ()}
    assert apply(root).steps == ()
    assert [step.documents for step in apply(root, scripts=True).steps] == [("content/authors/late.yaml",)]
    assert files(root)["content/authors/late.yaml"] == b"first: L\nlast: M\n"


def test_what_a_private_attribute_is_split_into_is_private(root: Path) -> None:
    write(root, collection("author", {"name": {**STRING, "private": True}}))
    public = SPLIT.replace('"last": {"type": "string"', '"last": {"type": "string", "private": False')
    [step] = migrate(root, "split", attribute="author.name", file="n.py", code=public).steps
    found = json.loads(files(root)["content-types/author.json"])["attributes"]
    assert found == {"first": {**STRING, "private": True}, "last": {**STRING, "private": False}}
    assert step.notes == ("api::author.author.first becomes private, because name is private",)


def test_the_new_attributes_are_localized_and_private_like_the_old_one(tmp_path: Path) -> None:
    name = {**translated(STRING), "private": True}
    write(
        tmp_path,
        {
            "site.yaml": "locales: {available: [en, fr]}\n",
            **collection("author", {"name": name, "age": {"type": "integer"}}, localized=True),
            "content/authors/a.yaml": "name: Ann Lee\n",
            "content/authors/a.fr.yaml": "name: Anne Lis\n",
        },
    )
    shared = '{"type": "string", "private": False, "pluginOptions": {"i18n": {"localized": False}}}'
    code = SPLIT.replace('"last": {"type": "string"}', f'"last": {shared}')
    migrate(tmp_path, "split", attribute="author.name", file="n.py", code=code)
    attributes = json.loads(files(tmp_path)["content-types/author.json"])["attributes"]
    assert attributes["first"] == name
    assert attributes["last"]["private"] is False
    assert attributes["last"]["pluginOptions"] == {"i18n": {"localized": False}}


def test_a_script_changes_documents_and_is_kept(root: Path) -> None:
    migrate(root, "script", type="author", file="w.py", code=SCRIPT)
    assert files(root)["content/authors/a.yaml"] == b"name: Ann B Cole # who\nage: 3   # years\nwords: 3\n"
    assert files(root)["content/authors/b.json"] == b'{"age": 4, "words": 0}'
    kept = (root / "migrations/0001-script-author.yaml").read_text()
    assert kept.startswith("# bifolio migrate script author w.py\n")
    assert apply(root, scripts=True).steps == ()


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("def migrate(:", r"w\.py:1 can't be executed: SyntaxError"),
        ("x = 1", "must define the function migrate"),
        ("def migrate(document): return 3", r"a\.yaml: the function must return a document"),
        ("def migrate(document): return document['x']", "the function raised KeyError: 'x'"),
    ],
)
def test_errors_of_scripts_are_shown_and_nothing_changes(root: Path, code: str, message: str) -> None:
    before = files(root)
    with pytest.raises(ValidationError, match=message):
        migrate(root, "script", type="author", file="w.py", code=code)
    assert files(root) == before
