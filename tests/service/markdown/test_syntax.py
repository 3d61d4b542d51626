"""Plain text, links, images and blocks in Markdown, as a Markdown parser understands them."""

from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from server.formats.markdown import markdown_to_html
from server.service.markdown.blocks import MAX_DEPTH, blocks_to_markdown
from server.service.markdown.syntax import escaped_line, image, link, safe_url
from server.service.public_site.blocks_html import blocks_to_html

# texts with many characters that have a meaning in Markdown
TEXTS = st.lists(
    st.one_of(
        st.sampled_from(list("\\`*_[]()<>&~|#!-+=:.1ab \n\t")),
        st.sampled_from(["&amp;", "<b>", "](", "![", "\x00", "\u2028", "\x85", "é", "--", "http://x.org"]),
        st.characters(exclude_categories=["Cs"]),
    ),
    max_size=20,
).map("".join)


class Page(HTMLParser):
    """Text and elements of a rendered page."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text, self.elements = "", list[tuple[str, dict[str, str | None]]]()
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Store an element."""
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data: str) -> None:
        """Add text."""
        self.text += data


def rendered(markdown: str) -> Page:
    return Page(markdown_to_html(markdown))


def plain(text: str) -> str:
    """Return text as one line. Markdown can't contain control characters."""
    return " ".join("".join(" " if c < " " or c == "\x7f" else c for c in text).split())


@given(TEXTS, TEXTS)
@example("](https://evil.example) [x", "a")
@example("<!-- ", "-->")
@example("a\\", "b")
@example("`", "`")
def test_no_title_breaks_out_of_a_link(title: str, document_id: str) -> None:
    url = f"/api/articles/{document_id}"
    page = rendered(f"- {link(title, url)}: {escaped_line(title)}")
    links = [attributes for tag, attributes in page.elements if tag == "a"]
    assert [tag for tag, _ in page.elements] == ["ul", "li", "a"]
    assert unquote(links[0]["href"] or "") == unquote(url.strip())
    assert plain(page.text) == plain(f"{plain(title)}: {plain(title)}")


@given(TEXTS, TEXTS)
@example("](javascript:alert(1)", "/uploads/a b(1).png")
def test_no_alternative_text_breaks_out_of_an_image(text: str, name: str) -> None:
    url = f"/uploads/{name}"
    page = rendered(f"x {image(text, url)}")
    assert [tag for tag, _ in page.elements] == ["p", "img"]
    assert unquote(page.elements[1][1]["src"] or "") == unquote(url.strip())
    assert plain(unescape(page.elements[1][1]["alt"] or "")) == plain(unescape(plain(text)))


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", " JavaScript:x", "java\x00script:x", "data:text/html,x"]
)
def test_a_url_that_could_run_a_script_is_left_out(url: str) -> None:
    assert safe_url(url) == ""
    assert link("Title", url) == "Title"


def test_long_text_is_truncated() -> None:
    assert escaped_line("word " * 100, 20) == "word word word word…"


# --- blocks ---------------------------------------------------------------------------------------


def text(value: str, **marks: bool) -> dict[str, Any]:
    return {"type": "text", "text": value, **marks}


def paragraph(*children: Any) -> dict[str, Any]:
    return {"type": "paragraph", "children": list(children)}


BLOCKS = [
    {"type": "heading", "level": 2, "children": [text("Who # what")]},
    paragraph(
        text("A "), text("bold", bold=True), text(" and "), text("italic ", italic=True), text("word.")
    ),
    paragraph({"type": "link", "url": "https://example.org/a(b)", "children": [text("a [link]")]}),
    {"type": "quote", "children": [text("- no list")]},
    {
        "type": "list",
        "format": "ordered",
        "children": [
            {"type": "list-item", "children": [text("one")]},
            {
                "type": "list",
                "format": "unordered",
                "children": [{"type": "list-item", "children": [text("inner", code=True)]}],
            },
            {"type": "list-item", "children": [text("two")]},
        ],
    },
    {"type": "code", "language": "python", "children": [text("if x:\n    print('```')\n")]},
    {"type": "image", "image": {"url": "/uploads/a.png", "alternativeText": "A fog bank"}},
]


def test_blocks_become_markdown() -> None:
    assert blocks_to_markdown(BLOCKS).split("\n") == [
        "## Who # what",
        "",
        "A **bold** and *italic* word.",
        "",
        r"[a \[link\]](https://example.org/a%28b%29)",
        "",
        r"> \- no list",
        "",
        "1. one",
        "   - `inner`",
        "2. two",
        "",
        "````python",
        "if x:",
        "    print('```')",
        "",
        "````",
        "",
        "![A fog bank](/uploads/a.png)",
    ]


def test_marks_mean_the_same_as_in_html() -> None:
    marked = [
        paragraph(text("x", **{name: True}))
        for name in ("bold", "italic", "underline", "strikethrough", "code")
    ]
    tags = [tag for tag, _ in rendered(blocks_to_markdown(marked)).elements]
    assert tags == [tag for tag, _ in Page(blocks_to_html(marked)).elements]


@given(st.lists(TEXTS, min_size=1, max_size=4), st.sampled_from(["paragraph", "quote", "heading", "list"]))
@example(["a\n---\n"], "paragraph")
@example(["1. a"], "quote")
@example(["# ", "#"], "heading")
@example(["a!", "b"], "paragraph")
def test_no_text_of_a_block_becomes_syntax(texts: list[str], kind: str) -> None:
    children = [text(each) for each in texts]
    wrap = {"list": lambda: {"type": "list", "children": [{"type": "list-item", "children": children}]}}
    block = wrap[kind]() if kind in wrap else {"type": kind, "level": 3, "children": children}
    allowed = {"paragraph": {"p"}, "quote": {"blockquote", "p"}, "heading": {"h3"}, "list": {"ul", "li"}}[
        kind
    ]
    page = rendered(blocks_to_markdown([block]))
    assert {tag for tag, _ in page.elements} - {"br"} <= allowed
    assert "".join(plain(page.text).split()) == "".join(plain("".join(texts)).split())


def test_deep_blocks_take_linear_time_and_end() -> None:
    block: dict[str, Any] = {"type": "list-item", "children": [text("deep")]}
    for _ in range(3 * MAX_DEPTH):
        block = {"type": "list", "children": [text("x"), block]}
    assert "deep" not in blocks_to_markdown([block])
    assert blocks_to_markdown([block]).count("\n") <= MAX_DEPTH


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: (
            st.lists(inner)
            | st.dictionaries(st.sampled_from(["type", "children", "text", "url", "image", "level"]), inner)
        ),
    )
)
def test_damaged_blocks_raise_nothing(value: Any) -> None:
    blocks_to_markdown(value)
