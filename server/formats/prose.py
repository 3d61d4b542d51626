"""Links, images, headings and anchors in a text."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from server.formats.normal_form import normalize

Kind = Literal["link", "image", "definition", "undefined"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link, an image or a definition such as `[name]: destination`. Lines and columns start at 1.

    If `is_named` is set, the link refers to a definition. The kind `undefined` means that the definition does
    not exist.
    """

    kind: Kind
    target: str
    line: int
    column: int
    alt: str | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    text: str
    line: int
    column: int


@dataclass(frozen=True)
class Prose:
    """A text with its headings, images and links. Links to other sites are left out."""

    links: tuple[Link, ...] = ()
    headings: tuple[Heading, ...] = ()
    text: str = ""

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The text's normalized anchors. An anchor ending with a dash stands for all that begin with it."""
        ids = _IDS.findall(self.text) if _HAS_IDS.search(self.text) else ()
        # MDX components and shortcodes can contain headings that a CommonMark parser doesn't recognize.
        lines = (_MARKS.sub("", text).strip(" \t#") for text in _HEADING_LINES.findall(self.text))
        others = (_EXPLICIT.sub("", line) for line in lines)
        headings = heading_anchors((*(heading.text for heading in self.headings), *others))
        return frozenset((*headings, *map(normalize_anchor, ids)))


EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)  # start of an external destination


def possible_anchors(text: str) -> frozenset[str]:
    found = (name for groups in _NAMES.findall(text) for name in groups if name)
    return frozenset(word for name in found for word in name.split())


def link_definition_names(text: str) -> frozenset[str]:
    return frozenset(name.casefold() for name in _DEFINED.findall(text))


# --- anchors --------------------------------------------------------------------------------------

# Matches ids in HTML and JSX (`id="x"`), and in the attribute lists of Kramdown and Hugo (`{: #x}`).
_IDS = re.compile(r"""(?:\b(?:id|name)=["']|\{[:.\w\s-]*#)([^"'\s}]+)""")
# All patterns run in linear time, because the text could be malicious.
_HEADING_LINES = re.compile(r"^[ \t>*+-]*#{1,6}[ \t](.+)$", re.MULTILINE)
_EXPLICIT = re.compile(r"\{:?[^{}]*\}$")
_MARKS = re.compile(r"[`*]|\]\([^()\n]*\)|<[^<>]*>")
# Matches a name that is in quotes, after a colon at the end of a line, or in a template or shortcode.
_NAMES = re.compile(
    r"""["']([^"'\s]{1,200})["']|:[ \t]([^\s:]{1,200})$|\{[{%<]([^{}\n]{1,200})""", re.MULTILINE
)
_DEFINED = re.compile(r"^[ \t]{0,20}\[([^\]\n]{1,999})\]:", re.MULTILINE)
_SYMBOLS = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff]")  # symbols, including emoji
_HAS_IDS = re.compile(r"id=|name=|\{")
_SEPARATORS = re.compile(r"[\W_]+")
_ASCII_ONLY = re.compile(r"[^a-zA-Z0-9 -]+")
_LEADING = re.compile(r"^[^a-zA-Z]+")
_PUNCTUATION = re.compile(r"[^\w\s-]+")


def normalize_anchor(anchor: str) -> str:
    return _SEPARATORS.sub("-", normalize("NFC", anchor).lower()).strip("-")


def heading_anchors(texts: Iterable[str]) -> Iterator[str]:
    """Yield the anchors that GitHub, Hugo, Kramdown and Zola generate for headings, normalized."""
    counts: dict[str, int] = {}
    for text in texts:
        forms = (_PUNCTUATION.sub("", text), _ASCII_ONLY.sub("", _LEADING.sub("", text)) or "section", text)
        for anchor in dict.fromkeys(map(normalize_anchor, forms)):
            yield anchor
            count = counts[anchor] = counts.get(anchor, -1) + 1
            # Some processors number duplicate anchors from 1, others from 2.
            yield from (f"{anchor}-{count}", f"{anchor}-{count + 1}") if count else ()
            if _SYMBOLS.search(text):  # In anchors, Zola replaces symbols with their names, such as `crab`.
                yield f"{anchor}-"
