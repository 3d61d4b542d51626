"""Markdown writer that escapes text."""

import re
from urllib.parse import quote

# In CommonMark, a backslash before punctuation removes its meaning. These characters have a meaning inside a
# line, some of them only beside certain others.
_INLINE = re.compile(
    r"[\\`*\[\]~|]"
    r"|(?<![^\W_])_|_(?![^\W_])"  # An underscore inside a word has no meaning.
    r"|<(?=[A-Za-z/!?])|&(?=#?\w+;)|!(?=\[|\Z)"
)
# At the start of a line, these begin a heading, a quote, a list, a table, or the underline of a heading.
_LINE_START = re.compile(r"\A(\d{1,9}(?=[.)])|(?=[-+=:#>]))")
# At the end of a heading, these are left out, unless they are escaped.
_CLOSING = re.compile(r"(?<!\S)(?=#+\Z)")
_BACKSLASH = r"\\"
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_SCHEME = re.compile(r"\s*([a-z][a-z0-9+.-]*):", re.IGNORECASE)
_SCHEMES = frozenset(("http", "https", "mailto", "tel"))
# All other characters are percent-encoded: parentheses, spaces and angle brackets could end a link's URL, and
# with a semicolon, a parameter could become an entity such as `&copy;`.
_URL_CHARS = "/:?#[]@!$&'*+,=%~"


def escape(text: str) -> str:
    return _INLINE.sub(r"\\\g<0>", _CONTROL.sub(" ", text))


def escape_start(line: str) -> str:
    """Escape the start of a line, so that it does not begin a list, a heading or a quote."""
    return _LINE_START.sub(r"\1\\", line)


def collapse(text: str) -> str:
    return " ".join(_CONTROL.sub(" ", text).split())


def escaped_line(text: str, max_chars: int = 0) -> str:
    """Escape text, and put it on one line of at most `max_chars` characters (0: no limit)."""
    line = collapse(text)
    if max_chars and len(line) > max_chars:
        line = line[: max_chars - 1].rstrip() + "…"
    return escape(line)


def heading(level: int, escaped: str) -> str:
    """Return a heading. Unlike the text of a `link`, `escaped` must already be escaped."""
    return f"{'#' * level} {_CLOSING.sub(_BACKSLASH, escaped)}"


def safe_url(url: str) -> str:
    """Percent-encode all characters of a URL that could end a Markdown link.

    Return "" if the URL's scheme is not allowed, such as `javascript:`.
    """
    scheme = _SCHEME.match(_CONTROL.sub("", url))
    if scheme and scheme[1].lower() not in _SCHEMES:
        return ""
    return quote(url.strip(), safe=_URL_CHARS, errors="replace")


def link(text: str, url: str) -> str:
    safe = safe_url(url)
    return f"[{escaped_line(text)}]({safe})" if safe else escaped_line(text)


def image(text: str, url: str) -> str:
    safe = safe_url(url)
    return f"![{escaped_line(text)}]({safe})" if safe else escaped_line(text)
