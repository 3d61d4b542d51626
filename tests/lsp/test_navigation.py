"""Hover, definitions, references, links, outline, folding and hints of documents."""

from pathlib import Path
from typing import Any

import pytest

from server.lsp.hover import hover
from server.lsp.inlay_hints import inlay_hints
from server.lsp.navigation import document_links, documents_by_title, find_definition, find_references
from server.lsp.outline import document_symbols, folding_ranges
from server.lsp.positions import Text
from server.lsp.view import EditorCapabilities, View
from tests.lsp.edits import path_of
from tests.lsp.sites import FILES, view_of
from tests.sites import write

PATH = "content/articles/new.md"
TEXT = """---
title: New
author: ann
tags: [fog, nowhere]
cover: fog.png
sections:
  - __component: shared.quote
    by: bob
---

# One

See [the first](a.md#below-it), [its text](../authors/ann.yaml) and ![](/uploads/fog.png).

```
# No heading
[no link](a.md)
```

## Two

### Three
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def at(word: str, offset: int = 1, text: str = TEXT) -> dict[str, Any]:
    """Return the parameters of a request at a word of the text."""
    return {"position": Text(text).position(text.index(word) + offset)}


def shown(view: View, word: str) -> str:
    found = hover(view, PATH, at(word))
    return found["contents"]["value"] if found else ""


def places(root: Path, locations: list[dict[str, Any]]) -> list[tuple[str, int]]:
    return [
        (path_of(one["uri"]).relative_to(root).as_posix(), one["range"]["start"]["line"]) for one in locations
    ]


def test_hover(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})
    assert shown(view, "ann").startswith("**Ann Moor**\n\nKeeps the light.\n\nAuthor `ann`")
    assert "3 × 2" in shown(view, "fog.png")
    assert "alternativeText: Fog at sea" in shown(view, "/uploads/fog")
    assert "**author** (manyToOne)" in shown(view, "author")
    assert "**by** (manyToOne)" in shown(view, "by")
    assert "`text`: text" in shown(view, "shared.quote")
    assert shown(view, "a.md#").startswith("**First**")
    assert shown(view, "nowhere") == ""
    assert hover(view, "site.yaml", {"position": {"line": 0, "character": 1}}) == {
        "contents": {"kind": "markdown", "value": "**name**\n\nThe name of the site."},
        "range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 4}},
    }


def test_the_status_of_a_document_is_shown(root: Path) -> None:
    write(root, {"content/articles/a.draft.md": "---\ntitle: Changed\n---\n"})
    write(root, {"content/articles/only.draft.md": "---\ntitle: Only\n---\n"})
    text = "---\nabout: [{__type: api::article.article, documentId: a}]\n---\n"
    found = hover(view_of(root, {PATH: text}), PATH, at("a}", 0, text))
    assert found is not None
    assert "published, with a modified draft · en" in found["contents"]["value"]


def test_definitions(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})

    def leads_to(word: str) -> list[tuple[str, int]]:
        return places(root, find_definition(view, PATH, at(word)))

    assert leads_to("ann") == [("content/authors/ann.yaml", 0)]
    assert leads_to("bob") == [("content/authors/bob.yaml", 0)]
    assert leads_to("fog.png") == [("content/uploads/fog.png", 0)]
    assert leads_to("shared.quote") == [("content-types/components/shared/quote.json", 0)]
    assert leads_to("a.md#") == [("content/articles/a.md", 8)]
    assert leads_to("nowhere") == []
    [(path, line)] = leads_to("author:")
    assert '"author"' in (root / path).read_text().splitlines()[line]
    schema = '{"attributes": {"a": {"target": "api::tag.tag"}}}'
    view = view_of(root, {"content-types/x.json": schema})
    found = find_definition(view, "content-types/x.json", at("api::", text=schema))
    assert places(root, found) == [("content-types/tag.json", 0)]


def test_the_definition_of_a_translated_document_is_its_translation(root: Path) -> None:
    text = "---\nabout: [{__type: api::article.article, documentId: 2024--b}]\n---\n"
    view = view_of(root, {"content/articles/new.fr.md": text, PATH: text})
    position = at("2024--b", text=text)
    assert places(root, find_definition(view, "content/articles/new.fr.md", position)) == [
        ("content/articles/2024/b.fr.json", 0)
    ]
    assert places(root, find_definition(view, PATH, position)) == [("content/articles/2024/b.json", 0)]


def test_references(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})
    found = places(root, find_references(view, PATH, at("ann")))
    assert found == [
        ("content/articles/2024/b.fr.json", 0),
        ("content/articles/2024/b.json", 0),
        ("content/articles/a.md", 2),
        (PATH, 2),
        (PATH, 12),
    ]
    author = view_of(root, {"content/authors/bob.yaml": "name: Bob\n", PATH: TEXT})
    assert places(root, find_references(author, "content/authors/bob.yaml", {"position": {}})) == [(PATH, 7)]
    pictures = find_references(view, "content/uploads/fog.png.yaml", {"position": {}})
    assert places(root, pictures) == [("content/articles/2024/b.json", 0), (PATH, 4), (PATH, 12)]


def test_links(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})
    found = [
        link["target"].removeprefix(root.as_uri() + "/content/") for link in document_links(view, PATH, {})
    ]
    assert found == [
        "authors/ann.yaml", "tags/fog.yaml", "uploads/fog.png", "authors/bob.yaml",
        "articles/a.md#below-it", "authors/ann.yaml", "uploads/fog.png",
    ]  # fmt: skip


PAGES = """---
title: New
---

See [it](/blog/a#below-it), [Ann](/by/ann/?x=1), [no](/blog/x) and [file](/content/tags/fog).
"""


def test_addresses_of_pages(root: Path) -> None:
    view = view_of(root, {PATH: PAGES})

    def leads_to(word: str) -> list[tuple[str, int]]:
        return places(root, find_definition(view, PATH, at(word, text=PAGES)))

    assert leads_to("/blog/a") == [("content/articles/a.md", 8)]
    assert leads_to("/by/ann") == [("content/authors/ann.yaml", 0)]
    assert leads_to("/blog/x") == []
    assert leads_to("/content/tags") == [("content/tags/fog.yaml", 0)]
    links = [link["target"].rpartition("/content/")[2] for link in document_links(view, PATH, {})]
    assert links == ["articles/a.md#below-it", "authors/ann.yaml", "tags/fog.yaml"]
    found = hover(view, PATH, at("/blog/a", text=PAGES))
    assert found is not None
    assert found["contents"]["value"].startswith("**First**")
    assert (PATH, 4) in places(root, find_references(view, "content/authors/ann.yaml", {"position": {}}))
    assert places(root, find_references(view, PATH, at("/blog/a", text=PAGES))) == [(PATH, 4)]


def test_documents_are_found_by_title(root: Path) -> None:
    assert [one["name"] for one in documents_by_title(view_of(root), "moo")] == ["Ann Moor"]


def test_the_outline_contains_keys_and_headings(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})

    def names(symbols: list[dict[str, Any]]) -> list[Any]:
        return [(s["name"], names(s["children"])) if s["children"] else s["name"] for s in symbols]

    assert names(document_symbols(view, PATH, {})) == [
        "title", "author", "tags", "cover",
        ("sections", [("1 shared.quote", ["__component", "by"])]),
        ("One", [("Two", ["Three"])]),
    ]  # fmt: skip
    for symbol in document_symbols(view, PATH, {}):
        assert symbol["range"]["end"]["line"] >= symbol["selectionRange"]["end"]["line"]
    flat = view_of(root, {PATH: TEXT}, EditorCapabilities(nests_symbols=False))
    assert [one["name"] for one in document_symbols(flat, PATH, {})][-3:] == ["One", "Two", "Three"]


def test_folding(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})
    found = {(fold["startLine"], fold["endLine"]) for fold in folding_ranges(view, PATH, {})}
    assert {(0, 8), (5, 7), (6, 7), (10, 21), (19, 21)} <= found


def test_titles_are_shown_beside_ids(root: Path) -> None:
    view = view_of(root, {PATH: TEXT})
    whole = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 30, "character": 0}}}
    hints = inlay_hints(view, PATH, whole)
    assert [(hint["label"], hint["position"]) for hint in hints] == [
        ("Ann Moor", {"line": 2, "character": 11}),
        ("Fog", {"line": 3, "character": 10}),
        ("Bob", {"line": 7, "character": 11}),
    ]


@pytest.mark.parametrize(
    "text", ["", "---\n", "---\na: [\n---\n", "{", "- a\n", "\x00", "---\nauthor: {a: [b\n", "é|", "["]
)
def test_any_text_is_accepted(root: Path, text: str) -> None:
    for path in (
        PATH,
        "content/articles/n.json",
        "content/articles/n.toml",
        "site.yaml",
        "content-types/x.json",
    ):
        view = view_of(root, {path: text})
        for line in (0, 1, 99):
            params = {"position": {"line": line, "character": 3}, "range": {}}
            for feature in (
                hover,
                find_definition,
                find_references,
                document_links,
                document_symbols,
                folding_ranges,
                inlay_hints,
            ):
                feature(view, path, params)
