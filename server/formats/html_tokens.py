"""HTML tokenizer that takes linear time, unlike `html.parser` and `nh3`."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Literal, NamedTuple

_MARKUP = re.compile("<(?=[a-zA-Z/!?])")
_TAG_NAME = re.compile(r"</?([a-zA-Z][^ \t\n\r\f/>]*)")
# The end of a tag, or one attribute. A quote that is never closed belongs to the attribute's name.
_ATTRIBUTE = re.compile(
    r"(?P<space>[ \t\n\r\f/]*+)"
    r"(?:(?P<end>>)|(?P<name>[^ \t\n\r\f/>][^ \t\n\r\f/>=]*+)"
    r"""(?:[ \t\n\r\f]*+=[ \t\n\r\f]*+(?:"([^"]*+)"|'([^']*+)'|(?!["'])([^ \t\n\r\f>]*+)))?)"""
)
_COMMENT_END = re.compile("--!?>")
# Only the end tag of these elements ends their text.
_RAW_TEXT_END = {
    name: re.compile(rf"</{name}(?=[ \t\n\r\f/>])", re.IGNORECASE | re.ASCII) for name in ("script", "style")
}
# `int` refuses longer numbers, and no character has such a code.
_LONG_NUMBER = re.compile("&#[0-9]{20,}")


class Token(NamedTuple):
    """A tag or a text in HTML.

    `name` is the tag's name in lower case, or the decoded text. The kind of a tag that ends with `/>` is
    `empty`.
    """

    kind: Literal["text", "start", "empty", "end"]
    name: str
    attributes: dict[str, str | None]
    start: int
    end: int


def tokenize(html: str) -> Iterator[Token]:
    """Yield the tags and texts in HTML. Comments are left out.

    A tag that is not closed is yielded as one text, together with everything after it.
    """
    at = text_start = 0
    while found := _MARKUP.search(html, at):
        start = found.start()
        tag = _tag(html, start)
        if tag is None:
            end = _end_of_comment(html, start)
            if end < 0:
                break
        else:
            end = tag.end
        yield from _text(html, text_start, start)
        at = text_start = end
        if tag:
            yield tag
            if tag.kind == "start" and tag.name in _RAW_TEXT_END:
                raw_end = _RAW_TEXT_END[tag.name].search(html, at)
                at = text_start = raw_end.start() if raw_end else len(html)
                yield Token("text", html[end:at], {}, end, at)
    yield from _text(html, text_start, len(html))


def _text(html: str, start: int, end: int) -> Iterator[Token]:
    if start < end:
        yield Token("text", _unescaped(html[start:end]), {}, start, end)


def _tag(html: str, start: int) -> Token | None:
    named = _TAG_NAME.match(html, start)
    if named is None:
        return None
    attributes: dict[str, str | None] = {}
    at = named.end()
    while found := _ATTRIBUTE.match(html, at):
        at = found.end()
        if found["end"]:
            kind: Literal["start", "empty", "end"] = (
                "end" if html[start + 1] == "/" else "empty" if found["space"].endswith("/") else "start"
            )
            return Token(kind, named[1].lower(), attributes, start, at)
        value = next((text for text in found.groups()[3:] if text is not None), None)
        attributes.setdefault(found["name"].lower(), None if value is None else _unescaped(value))
    return None


def _end_of_comment(html: str, start: int) -> int:
    """Return the index after a comment or declaration, or -1 for a tag or an unclosed declaration.

    A comment that is not closed extends to the end of the text.
    """
    if html.startswith("<!--", start):
        # `<!-->` is a whole comment.
        found = _COMMENT_END.search(html, start + 2)
        return found.end() if found else len(html)
    if _TAG_NAME.match(html, start):
        return -1
    return html.find(">", start) + 1 or -1


def _unescaped(text: str) -> str:
    return unescape(_LONG_NUMBER.sub("\N{REPLACEMENT CHARACTER}", text)) if "&" in text else text
