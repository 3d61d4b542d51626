"""Cleaning of HTML for feeds."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats.markdown import markdown_to_html
from server.service.public_site.blocks_html import blocks_to_html
from server.service.public_site.clean_html import clean, link_resolver

RESOLVE = link_resolver("https://example.org/articles/fog", "https://cms.example.org")


@pytest.mark.parametrize(
    ("html", "cleaned"),
    [
        ('<a href="ferry#top" onclick="x()">x</a>', '<a href="https://example.org/articles/ferry#top">x</a>'),
        ('<a href="../../../x">x</a>', '<a href="https://example.org/x">x</a>'),
        ('<a href="java\nscript:x">x</a>', "<a>x</a>"),
        ('<a href=" JaVaScRiPt:x">x</a>', "<a>x</a>"),
        ('<a href="//[">x</a>', "<a>x</a>"),
        ('<img src="data:image/svg+xml,x">', "<img />"),
        ('<img src="../../uploads/a%20b.png">', '<img src="https://cms.example.org/uploads/a%20b.png" />'),
        ('<img src="/uploads/../secret">', '<img src="https://example.org/secret" />'),
        ("<script>a</script>b<style>c</style><svg><p>d</p></svg>e", "be"),
        ("<b><i>open", "<b><i>open</i></b>"),
        ("</p>closed<blink>x</blink>", "closedx"),
        ("<b><i>crossed</b></i>", "<b><i>crossed</i></b>"),
        ('<p style="x" title="a &quot; b">x', '<p title="a &quot; b">x</p>'),
        ("a < b &amp; c &lt;script&gt;", "a &lt; b &amp; c &lt;script&gt;"),
        ("<script>never closed", ""),
        ("<embed src=x>after", "after"),
        ("<svg><math></svg>a</math>b", "ab"),
        (f"&#{'9' * 5000};", "\N{REPLACEMENT CHARACTER};"),
    ],
)
def test_only_harmless_html_is_kept(html: str, cleaned: str) -> None:
    assert clean(html, RESOLVE) == cleaned


LARGE = 50_000  # With this many, a parser that needs quadratic time takes many minutes.


@pytest.mark.parametrize(
    ("html", "cleaned"),
    [
        ("<a " * LARGE, ("&lt;a " * LARGE).strip()),
        ('<a href="' * LARGE, '&lt;a href="' * LARGE),
        ("<!--" * LARGE, ""),
        ("a<!" * LARGE, "a&lt;!" * LARGE),
        ("a</b" * LARGE, "a&lt;/b" * LARGE),
        ("<svg>" * LARGE + "</math>" * LARGE, ""),
        ("<div>" * LARGE + "</p>" * LARGE, "<div>" * 200 + "</div>" * 200),
        ("<p" + " x=1" * LARGE + ">", "<p></p>"),
        ("<p a" + " " * LARGE + "b" + " " * LARGE + ">", "<p></p>"),
    ],
    ids=range(9),
)
def test_tags_that_are_never_closed_take_linear_time(html: str, cleaned: str) -> None:
    assert clean(html, RESOLVE) == cleaned


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}
        assert not any((value or "").lower().lstrip().startswith("javascript") for _, value in attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


PIECES = st.sampled_from(
    ["<b>", "</b>", "<script>", "</script>", "<svg/onload=x>", "<p", ">", "<!--", "-->", '"', "'", "<a href=",
     "javascript:x", "&#106;avascript:x", "<iframe>", "</iframe>", "<img onerror=x src=y", "\0", "text",
     "<![CDATA["]
)  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=5), max_size=30).map("".join))
def test_what_is_kept_is_harmless_and_balanced(html: str) -> None:
    for text in (html, markdown_to_html(html)):
        found = _Elements()
        found.feed(clean(text, RESOLVE))
        found.close()
        assert not found.open
        assert not found.names & {"script", "svg", "iframe", "style", "object"}
        assert not [name for name in found.attributes if name.startswith("on")]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "children", "text", "url", "level", "image", "bold"]), inner
        )
    ),
    max_leaves=10,
)


@given(JSON)
def test_invalid_blocks_are_left_out(blocks: object) -> None:
    assert isinstance(blocks_to_html(blocks), str)
