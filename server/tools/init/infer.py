"""What the attributes of a group are, told from every value that its files have.

Values are as people wrote them, without quotes or with them: what would be another text after a round
trip as a number (1.10, 01234) or as a boolean (NO) stays text. What is chosen is tried on every value
with the reader that the server has; where that refuses one, the attribute is `json`.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from server.documents.constraints import is_email
from server.documents.ids import id_of_name, id_of_reference
from server.documents.timestamps import read_date, read_timestamp
from server.documents.values import Reading, read_value
from server.formats.scalars import is_null, typed
from server.formats.tree import Plain, Tree
from server.schema.model import FILE_FIELDS, RESERVED_FIELDS, Attribute
from server.tools.init.groups import Group, Member

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,14}")
_FLOAT = re.compile(r"-?(0|[1-9][0-9]*)\.[0-9]+")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_UID = re.compile(r"[A-Za-z0-9_.~-]+")
# Names of what looks like a number and is none, and of texts that are long some day.
_NO_NUMBER = re.compile(r"version|(^|_)(zip|phone|isbn|sku|code)$|postcode|postalcode", re.IGNORECASE)
_LONG = frozenset({"description", "summary", "excerpt", "abstract", "bio"})
_OWN = frozenset({"title", "name", "slug", "url", "permalink", "key", "path", "layout"})
_PEOPLE_AND_PICTURES = "author authors by creator editor image cover icon logo locale lang language"
_OPEN = frozenset(_PEOPLE_AND_PICTURES.split())
LONGEST = 255  # characters of a `string`
FEWEST = 5  # values that an enumeration is told from
CHOICES = 10  # the most values that an enumeration has


@dataclass(frozen=True)
class Found:
    """An attribute as it is proposed: its schema, in how many files it has a value, what is said of it."""

    name: str
    schema: Mapping[str, Any]
    files: int
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Told:
    """The values of one front-matter key: those that are not null, each with the file it is in."""

    name: str
    values: tuple[tuple[Member, Tree], ...] = ()

    @classmethod
    def of(cls, name: str, members: Iterable[Member]) -> "Told":
        pairs = [(m, m.page.tree.get(name)) for m in members]
        values = tuple((m, value) for m, value in pairs if not is_null(value))
        return cls(name, values)

    @property
    def plain(self) -> bool:
        """Whether all values are scalars that were written without quotes, or numbers of JSON."""
        return all(type(v) is Plain or isinstance(v, int) for _, v in self.values)

    @property
    def texts(self) -> list[str]:
        """The values as text, of scalars that are text or numbers."""
        return [str(v) for _, v in self.values if isinstance(v, str | int) and not isinstance(v, bool)]


Names = Mapping[str, frozenset[str]]  # the names of each group's documents, by the group's type


def attributes_of(group: Group, names: Names, uid: str) -> tuple[list[Found], list[str]]:
    """The attributes of a group's type `uid`, and the keys of its files that can't be attributes."""
    keys = dict.fromkeys(key for m in group.members for key in m.page.tree)
    good = [key for key in keys if _NAME.fullmatch(key) and key not in RESERVED_FIELDS]
    found = [_attribute(group, Told.of(key, group.members), names, uid) for key in good]
    if any(m.page.has_body for m in group.members):
        name = next(n for n in ("body", "content", "markdown", "text") if n not in keys)
        schema: dict[str, Any] = {"type": "richtext"}
        found.append(Found(name, schema, sum(m.page.has_body for m in group.members), ("the Markdown body",)))
    if group.localized:
        found = [_with_locales(group, each) for each in found]
    return found, [key for key in keys if key not in good and key not in FILE_FIELDS]


def _attribute(group: Group, told: Told, names: Names, uid: str) -> Found:
    files = len(group.members)
    made = _relation(told, names, uid) or _scalar(told) or _collection(told)
    schema: dict[str, Any] = dict(made[0])
    notes = list(made[1])
    wrong = _refused(schema, told)
    if wrong:
        schema, notes = {"type": "json"}, [f"not {schema['type']}: {wrong}"]
    if len(told.values) == files > 1 and all(v not in ("", []) for _, v in told.values):
        schema["required"] = True
    return Found(told.name, schema, len(told.values), tuple(notes))


def _refused(schema: Mapping[str, Any], told: Told) -> str:
    """What the server's reader says of the first value that it does not take as such an attribute."""
    options = {name: schema[name] for name in ("relation", "target") if name in schema}
    attribute = Attribute(told.name, schema["type"], enum=tuple(schema.get("enum", ())), **options)
    reading = Reading({}, "")
    for _, value in told.values:
        read_value(attribute, value, (), reading)
    return reading.wrong[0].message if reading.wrong else ""


Made = tuple[dict[str, Any], list[str]]


def _scalar(told: Told) -> Made | None:
    """The type of values that are all scalars; None where some are not."""
    values = [value for _, value in told.values]
    if not all(isinstance(v, str | int) for v in values):
        return None
    if not values:
        return {"type": "string"}, ["no file has a value"]
    if all(isinstance(v, bool) or (type(v) is Plain and v.lower() in ("true", "false")) for v in values):
        return {"type": "boolean"}, []
    if any(isinstance(v, bool) for v in values):
        return {"type": "json"}, ["booleans and other values"]
    for kind, fits in _KINDS:
        if fits(told):
            return {"type": kind}, []
    return _text(told)


def _is_integer(told: Told) -> bool:
    return _is_number(told) and all(_INTEGER.fullmatch(text) for text in told.texts)


def _is_float(told: Told) -> bool:
    """Whether all are numbers that are the same text again: 1.5 is, 1.10 is not."""
    same = (repr(float(t)) == t if _FLOAT.fullmatch(t) else _INTEGER.fullmatch(t) for t in told.texts)
    return _is_number(told) and all(same)


def _is_number(told: Told) -> bool:
    return told.plain and not _NO_NUMBER.search(told.name)


def _is_date(told: Told) -> bool:
    return all(_DAY.fullmatch(text) and _reads(read_date, text) for text in told.texts)


def _is_timestamp(told: Told) -> bool:
    return all(_DAY.match(text) and _reads(read_timestamp, text) for text in told.texts)


def _reads(read: Callable[[str], str], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _is_mail(told: Told) -> bool:
    return all("@" in text and is_email(text) for text in told.texts)


def _is_uid(told: Told) -> bool:
    """Whether a slug is another one for each document of a locale, and one that a `uid` may be."""
    seen = {(m.locale, str(v)) for m, v in told.values}
    return told.name == "slug" and len(seen) == len(told.values) and all(map(_UID.fullmatch, told.texts))


_KINDS: tuple[tuple[str, Callable[[Told], bool]], ...] = (
    ("integer", _is_integer),
    ("float", _is_float),
    ("date", _is_date),
    ("datetime", _is_timestamp),
    ("email", _is_mail),
    ("uid", _is_uid),
)


def _text(told: Told) -> Made:
    counts = Counter(told.texts)
    few = FEWEST <= len(told.texts) >= 2.5 * len(counts) and 2 <= len(counts) <= CHOICES
    if (
        few
        and min(counts.values()) > 1
        and told.name not in _OWN | _OPEN
        and all(_is_choice(c) for c in counts)
    ):
        enum = [value for value, _ in counts.most_common()]
        return {"type": "enumeration", "enum": enum}, [", ".join(enum)]
    long = told.name.lower() in _LONG or any("\n" in t or len(t) > LONGEST for t in told.texts)
    return {"type": "text" if long else "string"}, []


def _is_choice(text: str) -> bool:
    return 0 < len(text) <= 40 and text == text.strip() and "\n" not in text and "://" not in text


def _collection(told: Told) -> Made:
    """The type of values that are lists or mappings, or now this and now that."""
    values = [value for _, value in told.values]
    if all(isinstance(v, list) and not any(isinstance(i, dict | list) for i in v) for v in values):
        changed = sorted({i for v in values for i in v if type(i) is Plain and _changes(i)})
        return {"type": "array"}, [f"{', '.join(changed[:3])}: read as numbers"] if changed else []
    return {"type": "json"}, ["mappings" if all(isinstance(v, dict) for v in values) else "several forms"]


def _changes(text: Plain) -> bool:
    """Whether text that stands in a list means a number that is another text."""
    try:
        value = typed(text)
    except ValueError:
        return False
    return not isinstance(value, str | bool) and value is not None and str(value) != text


def _relation(told: Told, names: Names, uid: str) -> Made | None:
    """A relation to the type whose documents' names the values are; None where they are no such names."""
    entries = [(m, e) for m, v in told.values for e in (v if isinstance(v, list) else [v]) if not is_null(e)]
    if told.name in _OWN or not entries or not all(isinstance(entry, str) for _, entry in entries):
        return None
    distinct = {id_of_reference(str(entry)) for _, entry in entries}
    many = any(isinstance(value, list) for _, value in told.values)
    for target, known in sorted(names.items(), key=lambda pair: not _alike(told.name, pair[0])):
        matched = len(distinct & known)
        own = target == uid and any(id_of_reference(str(e)) == id_of_name(m.name) for m, e in entries)
        numbers = all(entry.isdigit() for entry in distinct)
        certain = (matched >= 2 and not numbers) or (matched >= 1 and _alike(told.name, target))
        if certain and not own and matched >= 0.9 * len(distinct):
            lost = sorted(distinct - known)
            notes = [f"→ {target.rpartition('.')[2]}"] + (
                [f"not there: {', '.join(lost[:3])}"] if lost else []
            )
            kind = "manyToMany" if many else "manyToOne"
            return {"type": "relation", "relation": kind, "target": target}, notes
    return None


def _alike(name: str, target: str) -> bool:
    """Whether a key is named after a type: author, authors, relatedAuthors."""
    singular = target.rpartition(".")[2].replace("-", "").lower()
    bare = name.replace("-", "").replace("_", "").lower()
    return bare.removesuffix("s").endswith(singular.removesuffix("s"))


def _with_locales(group: Group, found: Found) -> Found:
    """An attribute with whether its locales have values of their own: as soon as any two differ."""
    values: dict[str, list[Any]] = {}
    for member in group.members:
        values.setdefault(member.name, []).append(member.page.tree.get(found.name))
    body = any(note == "the Markdown body" for note in found.notes)
    own = body or any(value != some[0] for some in values.values() for value in some)
    if own == (found.schema["type"] == "relation"):
        return found
    i18n = {"pluginOptions": {"i18n": {"localized": own}}}
    return Found(found.name, {**found.schema, **i18n}, found.files, found.notes)
