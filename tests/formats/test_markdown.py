"""Links, images, headings and anchors in Markdown, with their positions."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats.markdown import markdown_to_html, read_markdown
from server.formats.prose import Prose, normalize_anchor

# A text, and its links as (kind, destination, line, column).
LINKS: dict[str, tuple[str, list[tuple[str, str, int, int]]]] = {
    "a link": ('See [x](a.md#b "Title").', [("link", "a.md#b", 1, 9)]),
    "wide characters before it": ("Né 🦊 [x](a.md)", [("link", "a.md", 1, 10)]),
    "several lines": ("a\r\n\r\n- b\r\n  [x](c d.md) [y](<c d.md>)\r\n", [("link", "c d.md", 4, 20)]),
    "a picture in a link": (
        "[![in](in.png)](out.md)",
        [("image", "in.png", 1, 8), ("link", "out.md", 1, 17)],
    ),
    "a table": ("| a |\n|---|\n| [t](t.md) |", [("link", "t.md", 3, 7)]),
    "a definition": (
        "[a][r] and [b]\n\n[r]: r.md\n[b]: <b.md> 'B'",
        [
            ("link", "r.md", 1, 1),
            ("link", "b.md", 1, 12),
            ("definition", "r.md", 3, 6),
            ("definition", "b.md", 4, 7),
        ],
    ),
    "a name that nothing defines": ("[a][nope] and [text] and [x][]", [("undefined", "nope", 1, 1)]),
    "other sites": ("[a](https://a.b) <https://c.d> [m](mailto:a@b.c)\n\n[r]: //x.y/z", []),
    "a picture elsewhere": ("![a](https://a.b/c.png)", [("image", "https://a.b/c.png", 1, 6)]),
    "code": ("`[a](a.md)`\n\n```\n[b](b.md)\n```\n\n    [c](c.md)\n", []),
    "escaped": (r"\[a](a.md) \![b](b.png)", [("link", "b.png", 1, 18)]),
    "a comment": ("<!-- [a](a.md)\n\n<a href='b.md'> -->\n\n[c](c.md)", [("link", "c.md", 5, 5)]),
    "HTML": (
        "<p>\n<a class=x\n href='a.md'>a</a> <IMG src=i.png></p>\n\nx <a href=\"b.md\">b</a> <a name=c></a>",
        [("link", "a.md", 3, 8), ("image", "i.png", 3, 29), ("link", "b.md", 5, 12)],
    ),
    "a footnote": ("a[^1]\n\n[^1]: [b](b.md)", [("link", "b.md", 3, 11)]),
    "no destination": ("[a]()", [("link", "", 1, 1)]),
}


@pytest.mark.parametrize("name", LINKS)
def test_links_have_the_positions_of_their_destinations(name: str) -> None:
    text, wanted = LINKS[name]
    assert [(link.kind, link.target, link.line, link.column) for link in read_markdown(text).links] == wanted


def test_lines_count_from_the_first_line() -> None:
    assert read_markdown("\n[a](b.md)", 7).links[0].line == 8


def test_an_empty_alt_is_a_choice_in_html_only() -> None:
    text = '![](a.png) ![ ](b.png) ![c *d*](c.png) <img src=e.png> <img src=f.png alt="">'
    alts = {link.target: link.alt for link in read_markdown(text).links}
    assert alts == {"a.png": None, "b.png": None, "c.png": "c d", "e.png": None, "f.png": ""}


def test_headings() -> None:
    text = "# A `b` [c](d.md) {#own}\n\nE\n==\n\n> ### F\n\n```\n# no\n```\n"
    found = [(h.level, h.text, h.line) for h in read_markdown(text).headings]
    assert found == [(1, "A b c", 1), (1, "E", 3), (3, "F", 6)]


@pytest.mark.parametrize(
    ("text", "anchors"),
    [
        ("## Don't *panic*, 2.0!", ["dont-panic-20", "don-t-panic-2-0"]),
        ("## 1. First steps", ["1-first-steps", "first-steps"]),
        ("# Über uns", ["über-uns", "%C3%BCber-uns"]),
        ("# A\n# A\n# A", ["a", "a-1", "a-2"]),
        ("# A {#own}", ["own"]),
        ("# A\n{: #own .big}", ["own"]),
        ("<h2 id='own'>A</h2>\n\n<a name=\"b\"></a>", ["own", "b"]),
        ("<Steps>\n  ## In JSX\n</Steps>", ["in-jsx"]),
        ("# 日本語", ["日本語", "section"]),
        ("# `code` and_snake", ["code-and_snake"]),
    ],
)
def test_anchors_of_several_processors_lead_to_a_heading(text: str, anchors: list[str]) -> None:
    found = read_markdown(text).anchors
    assert [anchor for anchor in anchors if normalize_anchor(anchor) not in found and "%" not in anchor] == []


@given(st.text(st.sampled_from("[]()!<>#a`*\n\r \\:\"'{}=-_😀é~&;"), max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    prose = read_markdown(text)
    assert isinstance(prose, Prose)
    assert isinstance(prose.anchors, frozenset)
    lines = text.split("\n")
    for link in prose.links:
        if link.kind in ("link", "image") and not link.is_named and link.target:
            assert 1 <= link.line <= len(lines)
            assert 1 <= link.column <= len(lines[link.line - 1]) + 1


@pytest.mark.parametrize(
    "piece",
    [
        "[a](b.md)\n",
        "[a][b] ",
        "](",
        "<a ",
        "{",
        "# a" + " #" * 50 + "\n",
        "# {",
        "`",
        "[a]: b\n",
        "<p>\n<a href=x>\n",
        '"',
    ],
)
def test_the_effort_grows_with_the_length(piece: str) -> None:
    """Count the steps of Python code, because times depend on the machine."""

    def steps(text: str) -> int:
        seen = 0

        def count(*_: object) -> None:
            nonlocal seen
            seen += 1

        sys.setprofile(count)
        try:
            prose = read_markdown(text)
            assert prose.anchors is not None
        finally:
            sys.setprofile(None)
        return seen

    short, long = steps(piece * 200), steps(piece * 2000)
    assert long < 20 * short


def test_a_surrogate_in_a_text_is_replaced() -> None:
    [link] = read_markdown("a \ud800 [x](y.md)").links
    assert (link.target, link.column) == ("y.md", 9)
    assert markdown_to_html("a \ud800") == "<p>a \N{REPLACEMENT CHARACTER}</p>\n"
