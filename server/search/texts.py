"""What of a document is searched: its texts, by attribute, with what each attribute counts.

Private attributes and passwords are never among them, nor are relations and media, which are
documents and files of their own. Components and zones count as the attribute that holds them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Any

from server.config.model import Settings
from server.documents.document import Document
from server.documents.values import Component
from server.schema.model import Attribute, Schema, Type
from server.search.markup import block_texts, paragraphs

MOST = 1_000_000  # characters of one text that are searched

# How the value of each type of attribute becomes texts.
READERS: Mapping[str, Callable[[Any], list[str]]] = {
    "string": lambda value: [value],
    "text": lambda value: value.split("\n\n"),
    "richtext": paragraphs,
    "blocks": lambda value: list(block_texts(value)),
    "enumeration": lambda value: [value],
    "email": lambda value: [value],
    "uid": lambda value: [value],
    "json": lambda value: _listed(value),
    "array": lambda value: _listed(value),
}
# What a word counts in an attribute of each type, where site.yaml does not say (`search.weights`).
WEIGHTS: Mapping[str, float] = {"string": 2, "text": 2, "enumeration": 2, "email": 2}
TITLE_WEIGHT = 6.0
_TITLES = ("title", "name", "headline", "heading", "label")


@dataclass(frozen=True, slots=True)
class Text:
    """One value that is searched: its attribute of the document, what it counts, its type, itself."""

    attribute: str
    weight: float
    kind: str
    value: Any

    def read(self) -> list[str]:
        """Its texts without markup, by paragraph."""
        value = self.value[:MOST] if isinstance(self.value, str) else self.value
        return READERS[self.kind](value)


@dataclass(frozen=True, slots=True)
class Task:
    """One version to be indexed, as it is sent to `indexer`; None for `texts` takes it out."""

    key: str
    group: str = ""
    language: str = ""
    texts: tuple[Text, ...] | None = None


def texts(document: Document, settings: Settings) -> list[Text]:
    """The texts of a document, the title first."""
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
    """The values with text of one attribute, each with the attribute that it has in its component."""
    if value is None or not searchable(attribute):
        return
    if attribute.group in ("component", "dynamiczone"):
        for component in value if isinstance(value, tuple) else (value,):
            assert isinstance(component, Component)
            for inner, held in zip(component.type.attributes.values(), component.values, strict=True):
                yield from _values(inner, held)
    else:
        yield attribute, value


def searchable(attribute: Attribute) -> bool:
    """Whether an attribute has text that anyone may find by."""
    return attribute.visible and (
        attribute.type in READERS or attribute.group in ("component", "dynamiczone")
    )


@lru_cache(maxsize=1000)
def title_of(type_: Type) -> str | None:
    """The attribute that a document is called by: what its uid is made from, or is named like a title."""
    shown = {name: a for name, a in type_.attributes.items() if a.visible and a.type in ("string", "text")}
    targets = (a.target_field for a in type_.attributes.values() if a.type == "uid" and a.target_field)
    return next((name for name in (*targets, *_TITLES, *shown) if name in shown), None)


def _weight(type_: Type, attribute: Attribute, settings: Settings, title: str | None) -> float:
    weights = settings.search_weights
    for key in (f"{type_.singular}.{attribute.name}", attribute.name):
        if key in weights:
            return weights[key]
    if attribute.name == title:
        return TITLE_WEIGHT
    if attribute.group in ("component", "dynamiczone"):
        return max(WEIGHTS.values())  # at most; each text in it counts as its own type does
    return WEIGHTS.get(attribute.type, 1.0)


def _listed(value: Any) -> list[str]:
    """The texts of a JSON value: itself, or those in a list."""
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, str)]


def shape(schema: Schema, settings: Settings) -> str:
    """A digest of what may be searched: an index made for another one is not asked (docs/search.md)."""
    parts: list[Any] = [settings.default_locale, settings.locales]
    for type_ in sorted(schema.types.values(), key=lambda t: t.uid):
        if type_.kind == "component" or type_.uid.startswith("api::"):
            attributes = [(a.name, a.type, a.component, a.components) for a in _open(type_)]
            parts.append((type_.uid, type_.localized, type_.draft_publish, attributes))
    return blake2b(repr(parts).encode(), digest_size=12).hexdigest()


def _open(type_: Type) -> list[Attribute]:
    return [a for a in type_.attributes.values() if searchable(a)]
