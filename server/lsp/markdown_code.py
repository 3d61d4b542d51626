"""Code and HTML comments in Markdown, in which links and headings are plain text.

The rules are those of CommonMark, except for indented code: a line that is indented by four spaces can also
belong to a list item, so indented code is read as text.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

# The start of a fence, heading, comment or code span, or an escaped character.
_OPENING = re.compile(
    r"^ {0,3}(?:(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})|(?P<heading>#{1,6}[ \t]))"
    r"|(?P<block>^ {0,3})?<!--|\\[!-/:-@\[-`{-~]|(?P<ticks>`+)",
    re.M,
)
_CLOSING_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[ \t\r]*$", re.M)
_TICKS = re.compile(r"`+")
# A line that ends the paragraph before it, and with it the code spans and inline comments.
_PARAGRAPH_END = re.compile(
    r"^[ \t>]*(?:\r?$|#{1,6}[ \t]|[-*+][ \t]|[0-9]{1,9}[.)][ \t]|[-=*_]{3,}|\||<!--)"
    r"|^ {0,3}(?:`{3,}[^`\n]*$|~{3,})",
    re.M,
)


class Code(NamedTuple):
    """The span of a fenced block, comment or code span. `is_inline` is set for a code span."""

    start: int
    end: int
    is_inline: bool = False


def find_code(text: str, start: int = 0) -> list[Code]:
    """Return the code and comments after index `start`, in the order of the text."""
    return list(_Scan(text, start).spans())


def code_at(index: int, spans: list[Code]) -> Code | None:
    """Return the code or comment that contains an index."""
    at = bisect_right(spans, index, key=attrgetter("start"))
    return spans[at - 1] if at and index < spans[at - 1].end else None


class _Scan:
    """One pass over a text. It takes linear time, because each part of the text is searched only once."""

    def __init__(self, text: str, start: int) -> None:
        self._text, self._start = text, start
        self._paragraph_end = self._comment_end = start
        self._ticks: dict[int, list[int]] = {}
        for ticks in _TICKS.finditer(text, start):
            self._ticks.setdefault(len(ticks[0]), []).append(ticks.start())

    def spans(self) -> Iterator[Code]:
        at = self._start
        while opening := _OPENING.search(self._text, at):
            at = opening.end()
            if span := self._span_from(opening):
                at = span.end
                yield span

    def _span_from(self, opening: re.Match[str]) -> Code | None:
        start, after = opening.span()
        if opening["fence"]:
            return Code(start, self._end_of_fence(opening["fence"], after))
        if opening["heading"]:
            end = self._text.find("\n", after)
            self._paragraph_end = end + 1 if end >= 0 else len(self._text)
        elif opening[0].endswith("<!--"):
            end = self._end_of_comment(after)
            if opening["block"] is None and end > self._end_of_paragraph(after):
                return None
            return Code(start, min(end, len(self._text)))
        elif opening["ticks"]:
            length = len(opening["ticks"])
            same = self._ticks.get(length, [])
            at = bisect_left(same, after)
            if at < len(same) and same[at] < self._end_of_paragraph(after):
                return Code(start, same[at] + length, is_inline=True)
        return None

    def _end_of_fence(self, fence: str, after: int) -> int:
        for closing in _CLOSING_FENCE.finditer(self._text, after):
            if closing[1].startswith(fence):
                return closing.end()
        return len(self._text)

    def _end_of_comment(self, after: int) -> int:
        """Return the index after the next `-->`. If there is none, return an index after the text."""
        if self._comment_end <= after:
            found = self._text.find("-->", after - 2)  # `<!-->` is a whole comment
            self._comment_end = found + 3 if found >= 0 else len(self._text) + 1
        return self._comment_end

    def _end_of_paragraph(self, after: int) -> int:
        if self._paragraph_end <= after:
            found = _PARAGRAPH_END.search(self._text, after)
            self._paragraph_end = found.start() if found else len(self._text)
        return self._paragraph_end
