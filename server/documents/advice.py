"""Hints on how to correct invalid values."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime, time
from unicodedata import combining

from server.documents.constraints import UID_PATTERN
from server.documents.timestamps import read_date
from server.formats.normal_form import normalize
from server.formats.tree import Tree
from server.schema.model import Attribute, Type

# --- dates ----------------------------------------------------------------------------------------

# Compiled at first use, since most sites have no errors.
_ISO_DATE = r"\d{4}-\d\d?-\d\d?"
_DAY_FORMATS = (  # If text matches multiple formats, the advice lists all possible dates.
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y", "%Y%m%d"),
    *("%d %B %Y", "%d. %B %Y", "%B %d %Y", "%B %d, %Y", "%d %b %Y", "%d. %b %Y", "%b %d %Y", "%b %d, %Y"),
)
_DAY_AND_TIME = r"(?i)(.+?)(?:[\sT,]+(\d\d?[:.h]\d\d(?::\d\d)?(?: ?[ap]m)?|\d\d? ?[ap]m))?"
_CLOCK = r"(?i)(\d\d?)(?:[:.h](\d\d))?(?::(\d\d))? ?([ap]m)?"
_MAX_CHARS = 60  # Longer text gets no advice.


def date_advice(text: str) -> str:
    if re.match(_ISO_DATE, text):
        return "this day does not exist; write it as YYYY-MM-DD"
    days = _possible_dates(text)
    return f"write it as YYYY-MM-DD: {' or '.join(days)}" if days else "write it as YYYY-MM-DD"


def time_advice(text: str) -> str:
    clock = _clock(text)
    return f"write it as HH:MM: {clock:%H:%M}" if clock else "write it as HH:MM, from 00:00 to 23:59"


def timestamp_advice(text: str) -> str:
    found = re.fullmatch(_DAY_AND_TIME, text.strip()) if len(text) <= _MAX_CHARS else None
    clock = _clock(found[2] or "0:00") if found else None
    days = _possible_dates(found[1]) if found else []
    if clock and days:
        return f"write {' or '.join(f'{day}T{clock:%H:%M:%S}Z' for day in days)}"
    return "write it as YYYY-MM-DDTHH:MM:SSZ"


def _possible_dates(text: str) -> list[str]:
    if re.fullmatch(_ISO_DATE, text):
        try:
            return [read_date(text)]
        except ValueError:
            return []
    found = []
    for form in _DAY_FORMATS:
        try:
            found.append(datetime.strptime(text, form).date().isoformat())
        except ValueError:
            continue
    return list(dict.fromkeys(found))


def _clock(text: str) -> time | None:
    found = re.fullmatch(_CLOCK, text.strip())
    if not found:
        return None
    hour, minute, second = (int(part or 0) for part in found.groups()[:3])
    if found[4]:
        hour = hour % 12 + (12 if found[4].lower() == "pm" else 0)
    try:
        return time(hour, minute, second)
    except ValueError:
        return None


# --- values ---------------------------------------------------------------------------------------

# Compiled at first use, since most sites have no errors.
_NUMBER = r"[^\w+-]*([-+]?\d[\d.,'’_\s]*)[^\d\s.,]{0,4}"
_THOUSANDS = r"[-+]?\d{1,3}(?:[.,]\d{3})+"
_TRUE = frozenset({"1", "y", "t", "x", "ja", "j", "oui", "si", "sí", "sim", "wahr", "vrai", "✓"})
_FALSE = frozenset({"0", "n", "f", "nein", "non", "não", "falsch", "faux"})


def advice(attribute: Attribute, tree: Tree) -> str:
    """Return a hint on how to correct a value of the wrong type, or "".

    The hint never quotes a password.
    """
    if attribute.type == "password":
        return ""
    if isinstance(tree, list):
        return _of_list(attribute, tree)
    if isinstance(tree, dict):
        return _OF_MAPPING.get(attribute.type, "")
    text = str(tree).strip()
    found = _OF_TEXT.get(attribute.type)
    return found(text) if found and len(text) <= _MAX_CHARS else ""


def component_advice(type_: Type) -> str:
    names = [f"{name}: …" for name, attribute in type_.attributes.items() if not attribute.derived]
    return f"write the attributes of {type_.uid} below it: {', '.join(names[:3])}"


def option_advice(attribute: Attribute, tree: Tree) -> str:
    """Return a hint on how to correct a value that violates an option of its attribute, or ""."""
    if not isinstance(tree, str):
        return ""
    if attribute.max_length is not None and len(tree) > attribute.max_length:
        return f"shorten it to {attribute.max_length} characters"
    if attribute.type == "email" and "@" not in tree:
        return "write it as name@example.org"
    return _slug(tree) if attribute.type == "uid" else ""


def _slug(text: str) -> str:
    if UID_PATTERN.fullmatch(text):
        return ""
    plain = "".join(c for c in normalize("NFKD", text.casefold()) if not combining(c))
    slug = re.sub(r"[^a-z0-9_.~]+", "-", plain).strip("-.") if plain.isascii() else ""
    return f"write {slug}" if slug else 'use only a-z, 0-9 and "-"'


def _of_list(attribute: Attribute, items: list[Tree]) -> str:
    first = items[0] if items else ""
    if attribute.to_many or attribute.multiple:
        return "write each value as a separate entry of the list"
    if attribute.type in ("json", "blocks") or isinstance(first, dict | list):
        return ""
    if len(items) == 1:
        return f"write a single value instead of a list: {attribute.name}: {first}"
    return f"write one of them, such as {attribute.name}: {first}"


def _boolean(text: str) -> str:
    word = text.casefold()
    return "write true" if word in _TRUE else "write false" if word in _FALSE else ""


def _possible_numbers(text: str) -> list[str]:
    """Return the numbers that a text such as `1,234 km` may mean."""
    found = re.fullmatch(_NUMBER, text)
    if not found:
        return []
    digits = re.sub(r"['’_\s]", "", found[1]).rstrip(".,")
    marks = [mark for mark in digits if mark in ".,"]
    if not marks:
        return [digits]
    whole, _, rest = digits.rpartition(marks[-1])
    fraction = f"{re.sub('[.,]', '', whole)}.{rest}"
    grouped = re.sub("[.,]", "", digits)
    if len(marks) == 1:
        return [grouped, fraction] if marks == [","] and re.fullmatch(_THOUSANDS, digits) else [fraction]
    if len(set(marks)) == 1:
        return [grouped] if re.fullmatch(_THOUSANDS, digits) else []
    return [fraction] if re.fullmatch(_THOUSANDS, whole) and marks.count(marks[-1]) == 1 else []


def _number(text: str) -> str:
    found = _possible_numbers(text)
    return f"write {' or '.join(found)}" if found else "write it in digits, such as 12 or 12.5"


def _integer(text: str) -> str:
    found = _possible_numbers(text)
    if not found:
        return "write it in digits, such as 12"
    whole = [number for number in found if "." not in number]
    return f"write {whole[0]}" if whole else "write a whole number, without decimals"


_OF_TEXT: Mapping[str, Callable[[str], str]] = {
    "integer": _integer,
    "biginteger": _integer,
    "float": _number,
    "decimal": _number,
    "boolean": _boolean,
    "date": date_advice,
    "time": time_advice,
    "datetime": timestamp_advice,
    "timestamp": timestamp_advice,
    "array": lambda text: f"write a list: [{text}]",
    "blocks": lambda text: "write blocks, or change the attribute's type to richtext in the schema",
}
_ID_ADVICE = (
    "write only the documentId: the file's name without the extension, unless the file contains a documentId"
)
_OF_MAPPING: Mapping[str, str] = {
    **dict.fromkeys(("string", "text", "richtext", "email", "uid", "enumeration"), "put the text in quotes"),
    "relation": _ID_ADVICE,
    "media": "write only the path",
    "blocks": "write each block as a list entry that begins with a dash",
    "array": "write each value as a list entry that begins with a dash",
}
