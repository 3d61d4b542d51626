"""HTML cleaner for feeds. It keeps only safe elements, and makes links absolute."""

from collections import Counter
from collections.abc import Callable, Mapping
from html import escape
from urllib.parse import urljoin, urlsplit

from server.formats.html_tokens import Token, tokenize
from server.paths import UPLOADS_URL

MAX_OPEN_ELEMENTS = 200  # If elements are nested more deeply, only their text is kept.

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
    "applet", "canvas", "iframe", "math", "noscript", "object", "script", "select", "style", "svg",
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


def link_resolver(page_url: str, media_url: str) -> Resolve:
    """Return a function that makes links on a page absolute, and rejects unsafe links.

    `media_url` is the URL of the server that serves `/uploads/`.
    """

    def resolve(link: str) -> str | None:
        try:
            # Browsers remove these characters, so `java\nscript:` would be a script.
            link = link.translate(_REMOVED).strip()
            absolute = urljoin(page_url, link)
            parts = urlsplit(absolute)
        except ValueError:
            return None
        if parts.scheme not in _SCHEMES:
            return None
        inside = _media_path(link)
        return media_url.rstrip("/") + inside if inside else absolute

    return resolve


def _media_path(link: str) -> str:
    path = link if link.startswith("/") else "/" + link.lstrip("./")
    return path if path.startswith(UPLOADS_URL) and "/../" not in path else ""


class _Cleaner:
    def __init__(self, resolve: Resolve) -> None:
        self.out: list[str] = []
        self._resolve = resolve
        self._open: list[str] = []
        self._dropped: list[str] = []
        self._dropped_names: Counter[str] = Counter()  # how often each name is in `_dropped`

    def add(self, token: Token) -> None:
        if token.kind == "text":
            if not self._dropped:
                self.out.append(escape(token.name, quote=False))
        elif token.kind == "end":
            self._end(token.name)
        elif token.name in _DROPPED:
            if token.kind == "start":
                self._dropped.append(token.name)
                self._dropped_names[token.name] += 1
        elif not self._dropped:
            self._start(token)

    def _start(self, token: Token) -> None:
        tag = token.name
        is_void = tag in _VOID
        if tag not in _ELEMENTS or (not is_void and len(self._open) >= MAX_OPEN_ELEMENTS):
            return
        self.out.append(f"<{tag}{self._attributes(token)}{' /' * is_void}>")
        if not is_void:
            self._open.append(tag)
            if token.kind == "empty":
                self._end(tag)

    def _end(self, tag: str) -> None:
        if self._dropped:
            # `_dropped` can be long, so `_dropped_names` is used to check whether it contains the tag.
            while self._dropped_names[tag]:
                closed = self._dropped.pop()
                self._dropped_names[closed] -= 1
                if closed == tag:
                    return
            return
        while tag in self._open:
            closed = self._open.pop()
            self.out.append(f"</{closed}>")
            if closed == tag:
                return

    def finish(self) -> str:
        self.out += [f"</{tag}>" for tag in reversed(self._open)]
        return "".join(self.out)

    def _attributes(self, token: Token) -> str:
        allowed = _ATTRIBUTES.get(token.name, frozenset()) | _ATTRIBUTES[""]
        written: list[str] = []
        for name, value in token.attributes.items():
            if name in allowed:
                text = self._resolve(value or "") if name in _URLS else name if value is None else value
                if text is not None:
                    written.append(f' {name}="{escape(text)}"')
        return "".join(written)


def clean(html: str, resolve: Resolve) -> str:
    cleaner = _Cleaner(resolve)
    for token in tokenize(html):
        cleaner.add(token)
    return cleaner.finish().strip()
