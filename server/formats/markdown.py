"""Markdown: links, images, headings, and rendering to HTML."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

# Markdown parsers written in Python take ten times as long, and only return the line numbers of blocks.
from pyromark import Options, events_with_range, reference_definitions
from pyromark import html as render_html

from server.formats.html_tokens import tokenize
from server.formats.prose import EXTERNAL, Heading, Kind, Link, Prose

_OPTIONS = Options.ENABLE_TABLES | Options.ENABLE_HEADING_ATTRIBUTES | Options.ENABLE_FOOTNOTES
_HTML_OPTIONS = Options.ENABLE_TABLES | Options.ENABLE_STRIKETHROUGH
# Strings from JSON can contain surrogates, which can't be encoded as UTF-8. The replacement character has the
# same number of bytes.
_SURROGATE, _REPLACEMENT = re.compile("[\ud800-\udfff]"), "\N{REPLACEMENT CHARACTER}"
_ATTRIBUTE_LIST = re.compile(r"\{:?[^{}]*\}$")
_HTML_LINK = re.compile(r"<(?:a|img)\b", re.IGNORECASE)


def read_markdown(text: str, first_line: int = 1) -> Prose:
    """Find the links, images and headings in Markdown. `first_line` is the number of its first line."""
    reader = _Reader(_SURROGATE.sub(_REPLACEMENT, text), first_line)
    reader.read()
    return reader.result()


def markdown_to_html(text: str) -> str:
    """Convert Markdown to HTML, with tables and strikethrough. HTML in the text is left unchanged."""
    return render_html(_SURROGATE.sub(_REPLACEMENT, text), options=_HTML_OPTIONS)


class _Reader:
    def __init__(self, text: str, first_line: int) -> None:
        self._text, self._first = text, first_line
        self._data = text.encode(errors="surrogatepass")
        self._starts = [0, *(match.end() for match in re.finditer(b"\n", self._data))]
        self._links: list[Link] = []
        self._headings: list[Heading] = []
        self._html: list[tuple[int, str]] = []
        self._heading: tuple[int, int, list[str]] | None = None
        self._images: list[tuple[dict[str, Any], int, int, list[str]]] = []

    def read(self) -> None:
        for event, span in events_with_range(
            self._text, options=_OPTIONS, broken_link_callback=self._add_undefined
        ):
            if not isinstance(event, dict):  # SoftBreak, HardBreak, Rule
                continue
            ((name, value),) = event.items()
            if name in ("Text", "Code"):
                for texts in self._open_texts():
                    texts.append(str(value))
            elif name == "Start":
                self._start(value, span["start"], span["end"])
            elif name == "End":
                self._end(value)
            elif name in ("Html", "InlineHtml"):
                self._html.append((span["start"], str(value)))
        if "]:" in self._text:
            for definition in reference_definitions(self._text, options=_OPTIONS).values():
                start, end = definition["span"]["start"], definition["span"]["end"]
                self._add("definition", definition["dest"], start, end)
        self._read_html()

    def _open_texts(self) -> Iterator[list[str]]:
        if self._heading:
            yield self._heading[2]
        if self._images:
            yield self._images[-1][3]

    def _start(self, value: Any, start: int, end: int) -> None:
        kind, about = next(iter(value.items())) if isinstance(value, dict) else (value, {})
        if kind == "Heading":
            self._heading = (int(about["level"][1]), start, [])
        elif kind == "Image":
            self._images.append((about, start, end, []))
        elif kind == "Link" and about["link_type"] not in ("Autolink", "Email"):
            is_named = about["link_type"] != "Inline"
            self._add("link", about["dest_url"], start, end, is_named=is_named)

    def _end(self, value: Any) -> None:
        if value == "Image":
            about, start, end, texts = self._images.pop()
            is_named, alt = about["link_type"] != "Inline", "".join(texts).strip() or None
            self._add("image", about["dest_url"], start, end, alt, is_named=is_named)
        elif isinstance(value, dict) and "Heading" in value and self._heading:
            level, start, texts = self._heading
            text = _ATTRIBUTE_LIST.sub("", "".join(texts).strip()).strip()
            self._headings.append(Heading(level, text, *self._line_and_column(start)))
            self._heading = None

    def _add_undefined(self, link: Any) -> None:
        # If undefined, `[text]` and `[text][]` are usually meant as plain text.
        if link["link_type"] == "Reference":
            self._links.append(
                Link("undefined", link["reference"], *self._line_and_column(link["span"]["start"]))
            )

    def _add(
        self, kind: Kind, target: str, start: int, end: int, alt: str | None = None, *, is_named: bool = False
    ) -> None:
        # If the link itself contains the destination, report the destination's position.
        if kind != "image" and EXTERNAL.match(target):
            return
        written = target.encode(errors="surrogatepass")
        at = -1 if is_named or not written else self._data.rfind(written, start, end)
        self._links.append(Link(kind, target, *self._line_and_column(start if at < 0 else at), alt, is_named))

    def _line_and_column(self, index: int) -> tuple[int, int]:
        line = bisect_right(self._starts, index) - 1
        column = len(self._data[self._starts[line] : index].decode(errors="replace")) + 1
        return self._first + line, column

    def _read_html(self) -> None:
        for start, html in _joined(self._html):
            for kind, target, alt, at in _html_links(html):
                if kind == "image" or not EXTERNAL.match(target):
                    place = self._line_and_column(start + len(html[:at].encode(errors="surrogatepass")))
                    self._links.append(Link(kind, target, *place, alt))

    def result(self) -> Prose:
        links = sorted(self._links, key=lambda link: (link.line, link.column))
        return Prose(tuple(links), tuple(self._headings), self._text)


def _joined(parts: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    # A tag can span multiple lines.
    start, end = 0, -1
    pieces: list[str] = []
    for at, piece in parts:
        if at != end:
            yield start, "".join(pieces)
            start, pieces = at, []
        pieces.append(piece)
        end = at + len(piece.encode(errors="surrogatepass"))
    yield start, "".join(pieces)


# --- HTML -----------------------------------------------------------------------------------------


def _html_links(html: str) -> Iterator[tuple[Kind, str, str | None, int]]:
    if not _HTML_LINK.search(html):
        return
    for token in tokenize(html):
        if token.kind not in ("start", "empty") or token.name not in ("a", "img"):
            continue
        attributes = token.attributes
        target = attributes.get("href" if token.name == "a" else "src")
        if target is None:
            continue  # an anchor, or JSX such as `<a {...props}>`
        index = max(html.find(target, token.start, token.end), token.start)
        alt = attributes["alt"] or "" if "alt" in attributes else None
        yield ("link", target, None, index) if token.name == "a" else ("image", target, alt, index)
