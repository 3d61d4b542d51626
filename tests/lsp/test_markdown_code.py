"""Links in code and comments are text, and links around them are links."""

import pytest

from server.lsp.markdown import find_headings, find_links


@pytest.mark.parametrize("text", [
    "`[a](b)`",
    "``a ` [a](b)``",
    "```[a](b)``` in a line",
    "a `b\n[a](b)` c",
    "`<!--` `[a](b)` -->",
    "[`a](b)`",
    "<!-- [a](b) -->",
    "a <!-- [a](b)\n--> b",
    "<!--\n\n[a](b)\n\n```\n-->",
    "<!-- [a](b)",
    "```\n[a](b)\n``` x\n[a](b)\n```",
    "````md\n```\n[a](b)\n```\n````",
    "~~~\n<!--\n~~~\n`[a](b)`",
    "```\r\n[a](b)\r\n```\r\n",
    "```\n[a](b)",
])  # fmt: skip
def test_links_in_code_and_comments(text: str) -> None:
    assert list(find_links(text)) == []


@pytest.mark.parametrize("text", [
    "`a` [a](b) `c`",
    "[`a`](b)",
    "[`]`](b)",
    "`href='c`[a](b)`'",
    "[`a](c)`](b)",
    "` [a](b)",
    "`` [a](b) `",
    "\\`[a](b)`",
    "a `b\n\n[a](b) `c",
    "a `b\r\n\r\n[a](b) `c",
    "- ` [a](b)\n- `",
    "# ` [a](b)\n`",
    "| ` | [a](b)\n| ` |",
    "a ` [a](b)\n```\n`\n```",
    "a ` [a](b)\n<!-- ` -->",
    "\\<!-- [a](b) -->",
    "a <!-- b\n\n[a](b) -->",
    "a <!-- [a](b)",
    "<!--> [a](b) -->",
    "<!-- c --> [a](b) <!-- d -->",
    "```a``` [a](b)",
    "```\n```\n[a](b)",
    "~~~ a`b\n~~~~\n[a](b)\n~~~",
])  # fmt: skip
def test_links_outside_of_code(text: str) -> None:
    assert [link.destination for link in find_links(text)] == ["b"]


def test_headings_in_comments() -> None:
    text = "# a\n<!--\n# b\n-->\n`c\nd` e\n===\n"
    assert [heading.text for heading in find_headings(text)] == ["a", "d` e"]
