"""Cleaning of HTML for feeds: keeps only safe elements and attributes, and makes links absolute."""

from collections.abc import Callable, Mapping
from html import escape
from html.parser import HTMLParser
from urllib.parse import urljoin, urlsplit

MAX_OPEN_ELEMENTS = 200  # of more deeply nested elements, only the text is kept

# fmt: off
_VOID = frozenset(("br", "col", "hr", "img", "source", "track", "wbr"))
_ELEMENTS = _VOID | {
    "a", "abbr", "aside", "audio", "b", "bdi", "bdo", "blockquote", "caption", "cite", "code", "colgroup",
    "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3",
    "h4", "h5", "h6", "i", "ins", "kbd", "li", "mark", "ol", "p", "picture", "pre", "q", "rp", "rt",
    "ruby", "s", "samp", "section", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody",
    "td", "tfoot", "th", "thead", "time", "tr", "u", "ul", "var", "video",
}
# The content of these elements is not text, or not meant to be read outside a page.
_DROPPED = frozenset((
    "applet", "canvas", "embed", "iframe", "math", "noscript", "object", "script", "select", "style", "svg",
    "template", "textarea", "title",
))
# fmt: on
_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "": frozenset(("dir", "lang", "title")),
    "a": frozenset(("href",)),
    "audio": frozenset(("controls", "src")),
    "blockquote": frozenset(("cite",)),
    "del": frozenset(("cite", "datetime")),
    "img": frozenset(("alt", "height", "src", "width")),
    "ins": frozenset(("cite", "datetime")),
    "ol": frozenset(("reversed", "start")),
    "q": frozenset(("cite",)),
    "source": frozenset(("src", "type")),
    "td": frozenset(("colspan", "rowspan")),
    "th": frozenset(("colspan", "rowspan", "scope")),
    "time": frozenset(("datetime",)),
    "track": frozenset(("kind", "src", "srclang")),
    "video": frozenset(("controls", "height", "poster", "src", "width")),
}
_URLS = frozenset(("cite", "href", "poster", "src"))
_REMOVED = dict.fromkeys(map(ord, "\t\n\r"))
_SCHEMES = frozenset(("http", "https", "mailto", "tel"))

Resolve = Callable[[str], str | None]  # returns the absolute URL for a link, or None if it is not allowed


def resolver(address: str, media: str) -> Resolve:
    """Return a function that makes links absolute. `address` is the document's public URL, and `media` is the
    URL of the server for `/uploads/`.
    """

    def resolve(link: str) -> str | None:
        try:
            # Browsers remove these characters, so `java\nscript:` would be a script.
            link = link.translate(_REMOVED).strip()
            absolute = urljoin(address, link)
            parts = urlsplit(absolute)
        except ValueError:
            return None
        if parts.scheme not in _SCHEMES:
            return None
        inside = _media_path(link)
        return media.rstrip("/") + inside if inside else absolute

    return resolve


def _media_path(link: str) -> str:
    """Return the path of the media file to which a link points (`/uploads/fog.png` for `../uploads/fog.png`),
    or "" for other links.
    """
    path = link if link.startswith("/") else "/" + link.lstrip("./")
    return path if path.startswith("/uploads/") and "/../" not in path else ""


class _Cleaner(HTMLParser):
    """HTML parser that writes the allowed elements to `out`, and closes every element."""

    def __init__(self, resolve: Resolve) -> None:
        super().__init__(convert_charrefs=True)
        self.out: list[str] = []
        self._resolve = resolve
        self._open: list[str] = []
        self._dropped: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if self._dropped or tag in _DROPPED:
            if tag in _DROPPED:
                self._dropped.append(tag)
            return
        is_void = tag in _VOID
        if tag not in _ELEMENTS or (not is_void and len(self._open) >= MAX_OPEN_ELEMENTS):
            return
        self.out.append(f"<{tag}{self._attributes(tag, attrs)}{' /' * is_void}>")
        if not is_void:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _DROPPED:
            return
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._dropped:
            while self._dropped.pop() != tag:
                pass
            return
        if self._dropped or tag not in self._open:
            return
        while True:
            closed = self._open.pop()
            self.out.append(f"</{closed}>")
            if closed == tag:
                return

    def handle_data(self, data: str) -> None:
        if not self._dropped:
            self.out.append(escape(data, quote=False))

    def finish(self) -> str:
        self.close()
        self.out += [f"</{tag}>" for tag in reversed(self._open)]
        return "".join(self.out)

    def _attributes(self, tag: str, attrs: list[tuple[str, str | None]]) -> str:
        allowed = _ATTRIBUTES.get(tag, frozenset()) | _ATTRIBUTES[""]
        written: dict[str, str] = {}
        for name, value in attrs:
            if name in allowed and name not in written:
                text = self._resolve(value or "") if name in _URLS else name if value is None else value
                if text is not None:
                    written[name] = f' {name}="{escape(text)}"'
        return "".join(written.values())


def clean(html: str, resolve: Resolve) -> str:
    """Return HTML with absolute links that is safe to show on another page."""
    cleaner = _Cleaner(resolve)
    cleaner.feed(html)
    return cleaner.finish().strip()
