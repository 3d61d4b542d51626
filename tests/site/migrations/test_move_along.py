"""Tests of the migration `move` between two content types that a relation connects."""

import json
from pathlib import Path
from typing import Any

import pytest

from server.errors import ValidationError
from server.service.opening import Mode, open_site
from tests.site.migrations.helpers import apply, files, lacking, migrate
from tests.sites import STRING, collection, relation, translated, write
from tests.sites import make as make_api

FILES = {
    "site.yaml": "locales: {available: [en, fr]}\nroles: {public: {book: [find], writer: [find]}}\n"
    "search: {weights: {book.born: 3}}\n"
    "export: {types: {book: {sort: 'born:desc'}}}\n",
    **collection(
        "book",
        {
            "title": STRING,
            "born": STRING,
            "shelf": translated(STRING),
            "writer": relation("manyToOne", "writer", inversedBy="books"),
            "cover": relation("oneToOne", "cover"),
        },
        localized=True,
        drafts=True,
    ),
    **collection("writer", {"name": STRING, "books": relation("oneToMany", "book", mappedBy="writer")}),
    **collection("cover", {"colour": STRING}, localized=True, drafts=True),
    "content/books/a.yaml": "title: A\n# year\nborn: '1950'\nwriter: ann\ncover: red\n",
    "content/books/b.md": "---\ntitle: B\nborn: '1950'\nwriter: ann\n---\n",
    "content/books/c.json": '{"title": "C", "writer": "ann"}\n',
    "content/books/d.yaml": "title: D\nwriter: bob\nborn: '1960'\n",
    "content/writers/ann.json": '{"name": "Ann"}\n',
    "content/writers/bob.md": "---\nname: Bob # B\n---\n",
    "content/covers/red.yaml": "colour: red\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def text(root: Path, path: str) -> str:
    return (root / path).read_text()


def test_a_value_moves_to_the_related_document(root: Path) -> None:
    migrate(root, "move", attribute="book.born", to="writer")
    assert text(root, "content/books/a.yaml") == "title: A\n# year\nwriter: ann\ncover: red\n"
    assert text(root, "content/books/c.json") == FILES["content/books/c.json"]
    assert json.loads(text(root, "content/writers/ann.json")) == {"name": "Ann", "born": "1950"}
    assert text(root, "content/writers/bob.md") == "---\nname: Bob # B\nborn: '1960'\n---\n"
    assert json.loads(text(root, "content-types/writer.json"))["attributes"]["born"] == STRING
    assert "born" not in text(root, "content-types/book.json")
    assert "weights: {writer.born: 3}" in text(root, "site.yaml")
    assert "sort: 'writer.born:desc'" in text(root, "site.yaml")
    assert "--via writer\n" in text(root, "migrations/0001-move-book-born.yaml")
    assert not open_site(root, Mode.READ).site.problems


def test_different_values_are_refused_with_all_documents(root: Path) -> None:
    write(root, {"content/books/b.md": "---\nborn: '1951'\nwriter: ann\n---\n"})
    write(root, {"content/books/e.yaml": "born: '1970'\n"})
    before = files(root)
    with pytest.raises(ValidationError) as error:
        migrate(root, "move", attribute="book.born", to="writer")
    assert error.value.message == (
        "The migration is not possible:\n"
        '  content/books/b.md:2:7: "born" has another value than in content/books/a.yaml, but both belong to '
        "content/writers/ann.json. Make them equal."
    )
    write(root, {"content/books/b.md": "---\nwriter: ann\n---\n"})
    with pytest.raises(ValidationError, match=r"would lose values in 1 file.*\n.*content/books/e\.yaml:1:7"):
        migrate(root, "move", attribute="book.born", to="writer")
    migrate(root, "move", lossy=True, attribute="book.born", to="writer")
    assert "born" not in text(root, "content/books/e.yaml")
    assert files(root) != before


def test_locales_and_drafts_go_to_their_versions(root: Path) -> None:
    write(
        root,
        {
            "content/books/a.yaml": "shelf: one\ncover: red\n",
            "content/books/a.fr.yaml": "shelf: un\ncover: red\n",
            "content/books/a.draft.yaml": "shelf: two\ncover: red\n",
            "content/covers/red.draft.yaml": "colour: reddish\n",
            "content/covers/red.fr.yaml": "colour: rouge\n",
            "content/covers/red.fr.draft.yaml": "colour: rose\n",
        },
    )
    migrate(root, "move", attribute="book.shelf", to="cover")
    made = {path: text(root, f"content/covers/red{path}.yaml") for path in ("", ".draft", ".fr", ".fr.draft")}
    assert made == {
        "": "colour: red\nshelf: one\n",
        ".draft": "colour: reddish\nshelf: two\n",
        ".fr": "colour: rouge\nshelf: un\n",
        ".fr.draft": "colour: rose\nshelf: un\n",
    }


def with_draft_key(root: Path, name: str, wanted: object, more: dict[str, object] | None = None) -> None:
    """Set `options.draftWhen` of a content type with drafts, and add attributes."""
    schema = json.loads(text(root, f"content-types/{name}.json"))
    schema["options"]["draftWhen"] = wanted
    schema["attributes"] |= more or {}
    write(root, {f"content-types/{name}.json": json.dumps(schema, indent=1) + "\n"})


def test_a_draft_that_its_file_marks_goes_to_drafts_only(root: Path) -> None:
    with_draft_key(root, "book", {"hidden": True})
    with_draft_key(root, "cover", {"published": False})
    write(
        root,
        {
            "content/books/a.yaml": "shelf: secret\ncover: red\nhidden: 'True'\n",
            "content/books/b.md": "---\nshelf: open\ncover: blue\n---\n",
            "content/books/c.json": '{"shelf": "secret too", "cover": "grey", "hidden": true}\n',
            "content/covers/blue.yaml": "colour: blue\npublished: false\n",
            "content/covers/grey.yaml": "colour: grey\npublished: false\n",
        },
    )
    before = files(root)
    with pytest.raises(
        ValidationError, match=r"lose values in 1 file.*\n.*content/books/a\.yaml:1:8"
    ) as error:
        migrate(root, "move", attribute="book.shelf", to="cover")
    assert len(error.value.message.splitlines()) == 2
    assert files(root) == before
    write(root, {"content/covers/red.draft.yaml": "colour: reddish\n"})
    migrate(root, "move", attribute="book.shelf", to="cover")
    made = {path: text(root, f"content/covers/{path}.yaml") for path in ("red", "red.draft", "blue", "grey")}
    assert made == {
        "red": "colour: red\n",
        "red.draft": "colour: reddish\nshelf: secret\n",
        "blue": "colour: blue\npublished: false\nshelf: open\n",
        "grey": "colour: grey\npublished: false\nshelf: secret too\n",
    }
    shown = make_api(root, {}).get("/api/covers?pagination[pageSize]=100", "full")
    assert [(each["documentId"], each.get("shelf")) for each in shown.data] == [("red", None)]


def test_a_file_name_can_mark_a_draft_that_moves(root: Path) -> None:
    with_draft_key(root, "book", {"state": "draft"}, {"state": STRING})
    schema = json.loads(text(root, "content-types/book.json"))
    schema["options"]["fileName"] = "{state}-{title}"
    write(
        root,
        {
            "content-types/book.json": json.dumps(schema),
            "content/books/draft-x.yaml": "shelf: secret\ncover: red\n",
        },
    )
    with pytest.raises(ValidationError, match=r"would lose values in 1 file"):
        migrate(root, "move", attribute="book.shelf", to="cover")


def test_there_and_back_along_a_one_to_one_relation_is_zero_bytes(root: Path) -> None:
    write(root, {"content/covers/red.yaml": "tint: dark\n"})
    schema = json.loads(text(root, "content-types/cover.json"))
    schema["attributes"] = {"colour": STRING, "tint": STRING}
    write(root, {"content-types/cover.json": json.dumps(schema, indent=1) + "\n"})
    before = files(root)
    migrate(root, "move", attribute="cover.tint", to="book")
    assert text(root, "content/books/a.yaml").endswith("cover: red\ntint: dark\n")
    migrate(root, "move", attribute="book.tint", to="cover")
    after = files(root)
    assert {path for path in before if before[path] != after.get(path)} == set()


def test_late_documents_are_moved(root: Path) -> None:
    migrate(root, "move", attribute="book.born", to="writer")
    write(root, {"content/books/late.yaml": "title: L\nborn: '1960'\nwriter: bob\n"})
    assert lacking(root) == {"0001-move-book-born": ("content/books/late.yaml",)}
    apply(root)
    assert text(root, "content/books/late.yaml") == "title: L\nwriter: bob\n"
    write(root, {"content/books/late.yaml": "title: L\nborn: '1961'\nwriter: bob\n"})
    with pytest.raises(ValidationError, match=r"content/writers/bob\.md:3:7: already contains the key"):
        apply(root)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"attribute": "book.writer", "to": "writer"}, "is a relation with another side"),
        ({"attribute": "writer.name", "to": "cover"}, "no relation connects them"),
        ({"attribute": "cover.colour", "to": "cover"}, "no relation connects them"),
        ({"attribute": "book.born", "to": "writer", "via": "cover"}, "no relation connects them"),
    ],
)
def test_impossible_moves_are_refused(root: Path, arguments: dict[str, Any], message: str) -> None:
    before = files(root)
    with pytest.raises(ValidationError, match=message):
        migrate(root, "move", **arguments)
    assert files(root) == before
