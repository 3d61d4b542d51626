"""Searchable texts of a document, with their attributes and weights."""

import html
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from server.documents.document import Document
from server.documents.values import components_in
from server.schema.model import Attribute, Schema, Type, title_of

if TYPE_CHECKING:  # The process that writes the index imports this module, and needs no settings.
    from server.config.model import Settings

# --- markup ---------------------------------------------------------------------------------------

_TARGET = r"(?:[^()\s]|\([^()\s]{0,500}\)){0,2000}(?:\s[\"'][^\"'\n]{0,500}[\"'])?"
_LINK = rf"\[([^\[\]]{{0,500}})\]\(\s?{_TARGET}\s?\)"
# (pattern, replacement), applied in this order, each in linear time. Groups with a lookahead are not
# possessive, because such groups match nothing before Python 3.11.3.
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"[^\S\n]+"), " "),
    (re.compile(r"<!--(?:(?!<!--|-->).)*-->|\{/\*(?:(?!/\*|\*/).)*\*/\}", re.DOTALL), " "),  # comments
    (re.compile(r"<(script|style)\b(?:(?!</?\1\b).)*</\1\s?>", re.DOTALL | re.IGNORECASE), " "),
    (re.compile(r"^(?:import|export) .*?(?:\bfrom .*|; ?|['\"] ?|)$", re.MULTILINE), " "),  # MDX
    (
        re.compile(r"^ ?(?:`{3,}|~{3,}|:{3,}\w*).*$", re.MULTILINE),
        " ",
    ),  # fences; the code between them is kept
    (re.compile(r"^ ?\[[^\[\]\n]{1,500}\]: ?\S.*$", re.MULTILINE), " "),  # link definitions
    # The following patterns are applied to each paragraph.
    (re.compile(rf"!{_LINK}"), r"\1"),  # images, including those inside links
    (re.compile(_LINK), r"\1"),
    (re.compile(r"!?\[([^\[\]\n]{1,500})\]\[[^\[\]\n]{0,500}\]"), r"\1"),
    (re.compile(r"</?[A-Za-z][^<>]{0,5000}+>|<https?://[^<>\s]{0,2000}+>"), " "),  # tags
    (re.compile(r"^ ?(?:#{1,6} |> ?|[-*+] |\d{1,9}[.)] |(?:[-=*_] ?){3,}+$)", re.MULTILINE), " "),
    (re.compile(r" #++ ?$", re.MULTILINE), ""),  # the optional `#` at the end of a heading
    (re.compile(r"^ ?\|?(?: ?:?-{2,}+:? ?\|)++.*$|\|", re.MULTILINE), " "),  # tables
    (re.compile(r"(?<!\\)(?:\*\*?|__|~~|`++|(?<!\w)_)(?=\S)|(?<=[^\s\\])(?:\*\*?|__|~~|`++|_(?!\w))"), ""),
    (re.compile(r"\\([!-/:-@\[-`{-~])"), r"\1"),
)
_WHOLE_TEXT_PATTERNS = 6  # the number of patterns, from the start, that are applied to the whole text
_PARAGRAPHS = re.compile(r"\n ?\n\s*+|\n(?= ?(?:#|[-*+] |\d{1,9}[.)] |\|))")
_SPACE = re.compile(r"\s+")


def paragraphs(text: str) -> list[str]:
    for pattern, replacement in _PATTERNS[:_WHOLE_TEXT_PATTERNS]:
        text = pattern.sub(replacement, text)
    found = (_inline(part) for part in _PARAGRAPHS.split(text))
    return [part for part in found if part]


def _inline(text: str) -> str:
    for pattern, replacement in _PATTERNS[_WHOLE_TEXT_PATTERNS:]:
        text = pattern.sub(replacement, text)
    return _SPACE.sub(" ", html.unescape(text)).strip()


def block_texts(blocks: Any) -> Iterator[str]:
    for block in blocks if isinstance(blocks, list) else ():
        text = "".join(_leaves(block))
        if text.strip():
            yield _SPACE.sub(" ", text).strip()


def _leaves(node: Any) -> Iterator[str]:
    if not isinstance(node, Mapping):
        return
    if isinstance(node.get("text"), str):
        yield node["text"]
    image = node.get("image")
    if isinstance(image, Mapping):
        yield from (f" {image[k]}" for k in ("alternativeText", "caption") if isinstance(image.get(k), str))
    children = node.get("children")
    for child in children if isinstance(children, list) else ():
        yield from _leaves(child)
        if isinstance(child, Mapping) and child.get("type") in ("list-item", "list"):
            yield " "


# --- texts ----------------------------------------------------------------------------------------

MAX_TEXT_CHARS = 1_000_000  # Only the beginning of longer texts is searched.

# functions that split a value into paragraphs, by attribute type
READERS: Mapping[str, Callable[[Any], list[str]]] = {
    "string": lambda value: [value],
    "text": lambda value: value.split("\n\n"),
    "richtext": paragraphs,
    "blocks": lambda value: list(block_texts(value)),
    "enumeration": lambda value: [value],
    "email": lambda value: [value],
    "uid": lambda value: [value],
    "json": lambda value: _list_texts(value),
    "array": lambda value: _list_texts(value),
}
# default weights by attribute type; the setting search.weights overrides them
WEIGHTS: Mapping[str, float] = {"string": 2, "text": 2, "enumeration": 2, "email": 2}
TITLE_WEIGHT = 6.0


@dataclass(frozen=True, slots=True)
class Text:
    """A searchable value. `attribute` is the top-level attribute that contains it.

    `kind` is the attribute type of the value itself. It differs from the type of `attribute` if the value is
    inside a component.
    """

    attribute: str
    weight: float
    kind: str
    value: Any

    def read(self) -> list[str]:
        value = self.value[:MAX_TEXT_CHARS] if isinstance(self.value, str) else self.value
        return READERS[self.kind](value)


@dataclass(frozen=True, slots=True)
class Task:
    """A version to write to the index or, if `texts` is None, to remove from it."""

    key: str
    group: str = ""
    language: str = ""
    texts: tuple[Text, ...] | None = None


def texts(document: Document, settings: "Settings") -> list[Text]:
    """Return a document's searchable texts, with the title first."""
    type_ = document.type
    title = title_of(type_)
    names = sorted(type_.attributes, key=lambda name: name != title)
    found: list[Text] = []
    for name in names:
        attribute = type_.attributes[name]
        weight = _weight(type_, attribute, settings, title)
        for inner, value in _values(attribute, document.get(name)):
            own = weight if inner is attribute or weight == 0 else min(weight, WEIGHTS.get(inner.type, 1))
            if own:
                found.append(Text(name, own, inner.type, value))
    return found


def _values(attribute: Attribute, value: Any) -> Iterator[tuple[Attribute, Any]]:
    if value is None or not searchable(attribute):
        return
    if attribute.holds_components:
        for component in components_in(value):
            for inner, own in zip(component.type.attributes.values(), component.values, strict=True):
                yield from _values(inner, own)
    else:
        yield attribute, value


def searchable(attribute: Attribute) -> bool:
    return attribute.visible and (attribute.type in READERS or attribute.holds_components)


def _weight(type_: Type, attribute: Attribute, settings: "Settings", title: str | None) -> float:
    weights = settings.search.weights
    for key in (f"{type_.singular}.{attribute.name}", attribute.name):
        if key in weights:
            return weights[key]
    if attribute.name == title:
        return TITLE_WEIGHT
    if attribute.holds_components:
        # This is an upper bound, because the weight of a text inside a component also depends on its own
        # type.
        return max(WEIGHTS.values())
    return WEIGHTS.get(attribute.type, 1.0)


def _list_texts(value: Any) -> list[str]:
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]


def shape(schema: Schema, settings: "Settings") -> str:
    """Return a digest of the site's locales and searchable attributes.

    An index can be used only if it was built for the same digest.
    """
    parts: list[Any] = [settings.locales.default, settings.locales.available]
    for type_ in sorted(schema.types.values(), key=lambda t: t.uid):
        if type_.kind == "component" or type_.uid.startswith("api::"):
            attributes = [(a.name, a.type, a.component, a.components) for a in _searchable_in(type_)]
            parts.append((type_.uid, type_.localized, type_.draft_publish, attributes))
    return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _searchable_in(type_: Type) -> list[Attribute]:
    return [a for a in type_.attributes.values() if searchable(a)]
