"""Inference of attribute types from the values of keys."""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from server.documents.constraints import is_email
from server.documents.timestamps import read_date, read_timestamp
from server.formats.tree import Plain, Tree, is_null, resolve_plain_values
from server.storage.media import mime_type
from server.tools.init.groups import PageMember

_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UID = re.compile(r"[A-Za-z0-9_.~-]+")
# Versions look like numbers but are text, because version 1.10 is not the same as 1.1.
_VERSION = re.compile("version", re.IGNORECASE)
_NO_NUMBER = re.compile(r"(^|_)(zip|phone|isbn|sku|code)$|postcode|postalcode", re.IGNORECASE)
_TEXT_NAMES = frozenset({"description", "summary", "excerpt", "abstract", "bio"})
OWN_TEXTS = frozenset({"title", "name", "slug", "url", "permalink", "key", "path", "layout"})
_PEOPLE_AND_PICTURES = "author authors by creator editor image cover icon logo locale lang language"
_LABELS = frozenset({"categories", "keywords", "tag", "tags", "topic", "topics"})
_OPEN = frozenset(_PEOPLE_AND_PICTURES.split()) | _LABELS
MAX_STRING_CHARS = 255  # Longer values need the type `text`.
MIN_ENUMERATION_VALUES = 5  # With fewer values, an enumeration is not suggested.
MAX_CHOICES = 10  # maximum number of choices in an enumeration
NO_VALUE = "no file has a value"


@dataclass(frozen=True)
class KeyValues:
    """The values of one key, each with the page that contains it. Nulls are omitted."""

    name: str
    values: tuple[tuple[PageMember, Tree], ...] = ()

    @classmethod
    def of(cls, name: str, members: Iterable[PageMember]) -> "KeyValues":
        pairs = [(m, m.page.tree.get(name)) for m in members]
        values = tuple((m, value) for m, value in pairs if not is_null(value))
        return cls(name, values)

    @property
    def plain(self) -> bool:
        return all(type(v) is Plain or isinstance(v, int) for _, v in self.values)

    @property
    def texts(self) -> list[str]:
        return [str(v) for _, v in self.values if isinstance(v, str | int) and not isinstance(v, bool)]


TypeProposal = tuple[dict[str, Any], list[str]]  # an attribute's schema, and notes about it


def propose_scalar_type(key: KeyValues) -> TypeProposal | None:
    """Propose an attribute type for scalar values. Return None if one of the values is not a scalar."""
    values = [value for _, value in key.values]
    if not all(isinstance(v, str | int) for v in values):
        return None
    if not values:
        return {"type": "string"}, [NO_VALUE]
    if all(isinstance(v, bool) or (type(v) is Plain and v.lower() in ("true", "false")) for v in values):
        return {"type": "boolean"}, []
    if any(isinstance(v, bool) for v in values):
        return {"type": "json"}, ["booleans and other values"]
    for kind, fits in _KINDS:
        if fits(key):
            return {"type": kind}, []
    return _propose_text_type(key)


def _is_integer(key: KeyValues) -> bool:
    return _is_number(key) and all(_INTEGER.fullmatch(text) for text in key.texts)


def _is_float(key: KeyValues) -> bool:
    # Text such as 1.10 is not a number, because it would become 1.1.
    same = (repr(float(t)) == t if _FLOAT.fullmatch(t) else _INTEGER.fullmatch(t) for t in key.texts)
    return _is_number(key) and not _VERSION.search(key.name) and all(same)


def _is_number(key: KeyValues) -> bool:
    return key.plain and not _NO_NUMBER.search(key.name)


def _is_date(key: KeyValues) -> bool:
    return all(_DAY.fullmatch(text) and _reads(read_date, text) for text in key.texts)


def _is_timestamp(key: KeyValues) -> bool:
    return all(_DAY.match(text) and _reads(read_timestamp, text) for text in key.texts)


def _reads(read: Callable[[str], str], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _is_mail(key: KeyValues) -> bool:
    return all("@" in text and is_email(text) for text in key.texts)


def _is_uid(key: KeyValues) -> bool:
    # Slugs must be unique in each locale.
    seen = {(m.locale, str(v)) for m, v in key.values}
    return key.name == "slug" and len(seen) == len(key.values) and all(map(_UID.fullmatch, key.texts))


_KINDS: tuple[tuple[str, Callable[[KeyValues], bool]], ...] = (
    ("integer", _is_integer),
    ("float", _is_float),
    ("date", _is_date),
    ("datetime", _is_timestamp),
    ("email", _is_mail),
    ("uid", _is_uid),
)


def _propose_text_type(key: KeyValues) -> TypeProposal:
    counts = Counter(key.texts)
    few = MIN_ENUMERATION_VALUES <= len(key.texts) >= 2.5 * len(counts) and 2 <= len(counts) <= MAX_CHOICES
    if any(map(_is_picture, counts)):
        return {"type": "string"}, ["paths of images, not media (docs/existing-sites.md)"]
    if (
        few
        and min(counts.values()) > 1
        and key.name not in OWN_TEXTS | _OPEN
        and all(_is_choice(c) for c in counts)
    ):
        enum = [value for value, _ in counts.most_common()]
        return {"type": "enumeration", "enum": enum}, [", ".join(enum)]
    long = key.name.lower() in _TEXT_NAMES or any("\n" in t or len(t) > MAX_STRING_CHARS for t in key.texts)
    return {"type": "text" if long else "string"}, []


def _is_choice(text: str) -> bool:
    return 0 < len(text) <= 40 and text == text.strip() and "\n" not in text and "://" not in text


def _is_picture(text: str) -> bool:
    return mime_type(text).startswith("image/")


def propose_collection_type(key: KeyValues) -> TypeProposal:
    """Propose an attribute type for values that are lists or mappings."""
    values = [value for _, value in key.values]
    if all(isinstance(v, list) and not any(isinstance(i, dict | list) for i in v) for v in values):
        changed = sorted({i for v in values for i in v if type(i) is Plain and _changes(i)})
        return {"type": "array"}, [f"{', '.join(changed[:3])}: read as numbers"] if changed else []
    if all(isinstance(v, dict) for v in values):
        return {"type": "json"}, ["mappings"]
    lists = all(isinstance(v, list) and all(isinstance(i, dict) for i in v) for v in values)
    return {"type": "json"}, ["lists of mappings" if lists else "different kinds of values"]


def _changes(text: Plain) -> bool:
    try:
        value = resolve_plain_values(text)
    except ValueError:
        return False
    return not isinstance(value, str | bool) and value is not None and str(value) != text
