"""Elements of prose: links, images, headings, and the anchors to which links can lead."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal
from unicodedata import normalize

Kind = Literal["link", "image", "definition", "undefined"]


@dataclass(frozen=True, slots=True)
class Link:
    """A link or image in a text.

    - `kind`: an `undefined` link has the form `[text][name]`, but no line `[name]: destination` defines its
      destination. A `definition` is such a line.
    - `target` is the destination without a title. For an undefined link, it is the name.
    - `line` and `column` count from 1.
    - `alt` is the text that replaces an image. It is None if the image has none.
    - `is_named`: whether the destination is written elsewhere, in a definition.
    """

    kind: Kind
    target: str
    line: int
    column: int
    alt: str | None = None
    is_named: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in a text. `level` is a number from 1 to 6."""

    level: int
    text: str
    line: int
    column: int


@dataclass(frozen=True)
class Prose:
    """Links and headings in a text. External links are omitted, but not external images.

    `text` is the text itself, in which HTML elements can have ids.
    """

    links: tuple[Link, ...] = ()
    headings: tuple[Heading, ...] = ()
    text: str = ""

    @cached_property
    def anchors(self) -> frozenset[str]:
        """The anchors to which links can lead, folded with `fold_anchor`.

        An anchor that ends with a dash stands for all anchors that begin with it.
        """
        ids = _IDS.findall(self.text) if _HAS_IDS.search(self.text) else ()
        # A component in MDX or a shortcode can contain headings that CommonMark does not see.
        lines = (_MARKS.sub("", text).strip(" \t#") for text in _HEADING_LINES.findall(self.text))
        others = (_EXPLICIT.sub("", line) for line in lines)
        headings = heading_anchors((*(heading.text for heading in self.headings), *others))
        return frozenset((*headings, *map(fold_anchor, ids)))


EXTERNAL = re.compile(r"[a-z][a-z0-9+.-]*:|//", re.IGNORECASE)  # the start of an external destination


def names_in(text: str) -> frozenset[str]:
    """Return the words in a text from which a front end may make anchors: values, and words in templates."""
    found = (name for groups in _NAMES.findall(text) for name in groups if name)
    return frozenset(word for name in found for word in name.split())


def defined_names(text: str) -> frozenset[str]:
    """Return the names that lines such as `[name]: destination` define, in lower case.

    This includes lines that Kramdown sees as definitions, but CommonMark does not.
    """
    return frozenset(name.casefold() for name in _DEFINED.findall(text))


# --- anchors --------------------------------------------------------------------------------------

# Ids in HTML and JSX (`id="x"`, `name='x'`), and in attribute lists of Kramdown and Hugo (`{: #x}`).
_IDS = re.compile(r"""(?:\b(?:id|name)=["']|\{[:.\w\s-]*#)([^"'\s}]+)""")
# The duration of each pattern is linear in the length of the text, because a text may be malicious.
_HEADING_LINES = re.compile(r"^[ \t>*+-]*#{1,6}[ \t](.+)$", re.MULTILINE)
_EXPLICIT = re.compile(r"\{:?[^{}]*\}$")
_MARKS = re.compile(r"[`*]|\]\([^()\n]*\)|<[^<>]*>")
# A name in quotes, at the end of a line after a colon, or in a template or shortcode.
_NAMES = re.compile(
    r"""["']([^"'\s]{1,200})["']|:[ \t]([^\s:]{1,200})$|\{[{%<]([^{}\n]{1,200})""", re.MULTILINE
)
_DEFINED = re.compile(r"^[ \t]{0,20}\[([^\]\n]{1,999})\]:", re.MULTILINE)
_SYMBOLS = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001faff]")  # including emoji
_HAS_IDS = re.compile(r"id=|name=|\{")
_SEPARATORS = re.compile(r"[\W_]+")
_ASCII_ONLY = re.compile(r"[^a-zA-Z0-9 -]+")
_LEADING = re.compile(r"^[^a-zA-Z]+")
_PUNCTUATION = re.compile(r"[^\w\s-]+")


def fold_anchor(anchor: str) -> str:
    """Return an anchor in a form in which the anchors of different Markdown processors are equal.

    Case, and the kind and number of separators, do not matter.
    """
    return _SEPARATORS.sub("-", normalize("NFC", anchor).lower()).strip("-")


def heading_anchors(texts: Iterable[str]) -> Iterator[str]:
    """Yield the folded anchors of headings, in all forms that are common: as GitHub and Hugo make them, as
    Kramdown (Jekyll) does, and as Zola does.

    If several headings have the same anchor, the later ones also have the anchor with `-1`, `-2` and so on.
    """
    counts: dict[str, int] = {}
    for text in texts:
        forms = (_PUNCTUATION.sub("", text), _ASCII_ONLY.sub("", _LEADING.sub("", text)) or "section", text)
        for anchor in dict.fromkeys(map(fold_anchor, forms)):
            yield anchor
            count = counts[anchor] = counts.get(anchor, -1) + 1
            # Some processors count from 1, others from 2.
            yield from (f"{anchor}-{count}", f"{anchor}-{count + 1}") if count else ()
            if _SYMBOLS.search(text):  # Zola writes the names of symbols, such as `crab`.
                yield f"{anchor}-"
