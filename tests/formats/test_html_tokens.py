"""The HTML tokenizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from server.formats.html_tokens import tokenize


def tokens(html: str) -> list[tuple[object, ...]]:
    return [
        (one.kind, one.name, one.attributes) if one.attributes else (one.kind, one.name)
        for one in tokenize(html)
    ]


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<B>a</b >", [("start", "b"), ("text", "a"), ("end", "b")]),
        ("a < b </> <3 &lt;b&gt;", [("text", "a < b "), ("text", " <3 <b>")]),
        ("<br/><br / >", [("empty", "br"), ("start", "br")]),
        ("<a href=/x/>", [("start", "a", {"href": "/x/"})]),
        ("<a b=1 B=2 c d=''>", [("start", "a", {"b": "1", "c": None, "d": ""})]),
        ("<a b = 'x>y' c=\"&quot;'\">", [("start", "a", {"b": "x>y", "c": "\"'"})]),
        ("<a b=it's c=>", [("start", "a", {"b": "it's", "c": ""})]),
        ("<a b=\"c>d", [("start", "a", {"b": None, '="c': None}), ("text", "d")]),
        ("a<b c<d", [("text", "a<b c<d")]),
        ("a<!-- <b> --!>c<!-->d<!--->e<!DOCTYPE x>f<?g?>", [("text", text) for text in "acdef"]),
        ("a<!-- <b>", [("text", "a")]),
        ("a<!b", [("text", "a<!b")]),
        ("<script>a<b></scripty></SCRIPT>c", [
            ("start", "script"), ("text", "a<b></scripty>"), ("end", "script"), ("text", "c"),
        ]),
        ("<style>a", [("start", "style"), ("text", "a")]),
        (f"&#{'9' * 5000};&#65;", [("text", "\N{REPLACEMENT CHARACTER};A")]),
    ],
)  # fmt: skip
def test_tags_and_texts_are_found(html: str, expected: list[tuple[object, ...]]) -> None:
    assert tokens(html) == expected


@given(st.text(alphabet="<>/!?-=\"' ab&;\n"))
def test_tokens_are_in_order(html: str) -> None:
    at = 0
    for token in tokenize(html):
        assert at <= token.start < token.end
        assert html[token.start] == "<" or token.kind == "text"
        at = token.end
    assert at <= len(html)
