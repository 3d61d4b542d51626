"""Each keystroke in a large or hostile file takes linear time."""

from pathlib import Path

import pytest

from server.lsp.keys import scan_nodes
from server.lsp.markdown import complete_link, find_headings, find_links
from server.lsp.outline import document_symbols, folding_ranges
from server.lsp.positions import Text
from server.lsp.view import Source, View
from tests.growth import is_linear
from tests.lsp.sites import FILES, view_of
from tests.sites import write

YAML = {
    "items": "- a: 1\n  b: 2\n",
    "closed brackets": "[]\n",
    "closed brackets in a key": "a: []\n",
    "brackets, then deeper keys": "[]\n  a: 1\n",
    "open brackets": "a: [\n",
    "one key": "a: 1\n",
    "empty keys": "a:\n",
    "quotes": 'a: "\n',
}
MARKDOWN = {
    "spaces in headings": "# a" + " " * 200 + "x\n",
    "headings": "# a\n",
    "levels": "# a\n## b\n",
    "fences and links": "```\n[a](b)\n```\n[a](b)\n",
    "brackets": "[",
    "closed brackets": "[[]",
    "texts of links": "[a](",
    "links in one line": "![a](b) ",
    "images in links": "[![a](b)](",
    "sources": "src='",
    "definitions": "   [a]:\n",
    "code spans": "`a` ``b`` ",
    "open code spans": "`a``b\n\n",
    "open code spans in one paragraph": "\\``a ",
    "open comments": "<!-- a ",
    "open comments in paragraphs": "a <!-- b\n\n",
    "comments": "<!-- a -->\n",
    "open fences": "~~~~\n```\n",
    "quotes": ">",
}


@pytest.mark.parametrize("piece", YAML)
def test_keys_take_linear_time(piece: str) -> None:
    assert is_linear(lambda size: scan_nodes("a.yaml", YAML[piece] * size), 100)


@pytest.mark.parametrize("piece", MARKDOWN)
def test_links_and_headings_take_linear_time(piece: str) -> None:
    assert is_linear(lambda size: list(find_links(MARKDOWN[piece] * size)), 150)
    assert is_linear(lambda size: find_headings(MARKDOWN[piece] * size), 150)
    assert is_linear(lambda size: find_headings("# " + MARKDOWN[piece].strip() * size)[0].anchor, 150)


PATH = "content/articles/x.md"


@pytest.mark.parametrize("piece", YAML)
def test_outlines_take_linear_time(tmp_path: Path, piece: str) -> None:
    write(tmp_path, FILES)
    views: dict[int, View] = {}

    def shown(size: int) -> None:
        view = views.setdefault(
            size, view_of(tmp_path, {PATH: f"---\n{YAML[piece] * size}---\n" + "# a\n" * size})
        )
        document_symbols(view, PATH, {})
        folding_ranges(view, PATH, {})

    assert is_linear(shown, 60)


@pytest.mark.parametrize("piece", ["[", "[[a]", "[a](", "[a][a]", "!", "[a] (src='"])
def test_completions_of_links_take_linear_time(tmp_path: Path, piece: str) -> None:
    write(tmp_path, FILES)

    view = view_of(tmp_path)

    def completed(size: int) -> None:
        text = "---\n---\n" + piece * size
        complete_link(view, Source(view.schema, PATH, claim, Text(text)), len(text))

    claim = view.layout.claim(PATH)
    assert claim is not None
    assert is_linear(completed, 200)
