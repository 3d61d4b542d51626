"""How to write what was probably meant by a value that its attribute can't have.

Whoever writes a file by hand writes dates, numbers and lists as at home. What is told here stands behind a
problem, so it says what to write, not what is wrong; it is "" where nobody can know.
"""

import re
from collections.abc import Callable, Mapping
from unicodedata import combining, normalize

from server.documents.advice.dates import date_advice, time_advice, timestamp_advice
from server.documents.constraints import UID
from server.formats.tree import Tree
from server.schema.model import Attribute, Type

# Patterns are compiled when they are first needed: most sites have nothing wrong.
_NUMBER = r"[^\w+-]*([-+]?\d[\d.,'’_\s]*)[^\d\s.,]{0,4}"
_THOUSANDS = r"[-+]?\d{1,3}(?:[.,]\d{3})+"
_TRUE = frozenset({"1", "y", "t", "x", "ja", "j", "oui", "si", "sí", "sim", "wahr", "vrai", "✓"})
_FALSE = frozenset({"0", "n", "f", "nein", "non", "não", "falsch", "faux"})
_LONGEST = 60  # characters of a value that is looked into


def advice(attribute: Attribute, tree: Tree) -> str:
    """What to write instead of a value that is not of its attribute's type; no password is quoted."""
    if attribute.type == "password":
        return ""
    if isinstance(tree, list):
        return _of_list(attribute, tree)
    if isinstance(tree, dict):
        return _OF_MAPPING.get(attribute.type, "")
    text = str(tree).strip()
    found = _OF_TEXT.get(attribute.type)
    return found(text) if found and len(text) <= _LONGEST else ""


def component_advice(type_: Type) -> str:
    """How a component is written: as a mapping of its attributes."""
    names = [f"{name}: …" for name, attribute in type_.attributes.items() if not attribute.derived]
    return f"write the attributes of {type_.uid} below it: {', '.join(names[:3])}"


def option_advice(attribute: Attribute, tree: Tree) -> str:
    """What to write instead of a value that breaks an option of its attribute."""
    if not isinstance(tree, str):
        return ""
    if attribute.max_length is not None and len(tree) > attribute.max_length:
        return f"shorten it by {len(tree) - attribute.max_length}"
    if attribute.type == "email" and "@" not in tree:
        return "write it as name@example.org"
    return _slug(tree) if attribute.type == "uid" else ""


def _slug(text: str) -> str:
    """How a text is written as a uid; "" where it is one."""
    if UID.fullmatch(text):
        return ""
    plain = "".join(c for c in normalize("NFKD", text.casefold()) if not combining(c))
    slug = re.sub(r"[^a-z0-9_.~]+", "-", plain).strip("-.") if plain.isascii() else ""
    return f"write {slug}" if slug else "write it with a-z, 0-9 and - alone"


def _of_list(attribute: Attribute, items: list[Tree]) -> str:
    first = items[0] if items else ""
    if attribute.to_many or attribute.multiple:
        return "write each by itself, in one list"
    if attribute.type in ("json", "blocks") or isinstance(first, dict | list):
        return ""
    if len(items) == 1:
        return f"write it without the list: {attribute.name}: {first}"
    return f"write one of them, such as {attribute.name}: {first}"


def _boolean(text: str) -> str:
    word = text.casefold()
    return "write true" if word in _TRUE else "write false" if word in _FALSE else ""


def _numbers(text: str) -> list[str]:
    """What a number that is written with commas, spaces or a unit may stand for."""
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
    found = _numbers(text)
    return f"write {' or '.join(found)}" if found else "write it in digits, such as 12 or 12.5"


def _integer(text: str) -> str:
    found = _numbers(text)
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
    "blocks": lambda text: "write blocks, or make it a richtext in the schema",
}
_ID = "write the documentId alone: the name of its file, if that says no other"
_OF_MAPPING: Mapping[str, str] = {
    **dict.fromkeys(("string", "text", "richtext", "email", "uid", "enumeration"), "put the text in quotes"),
    "relation": _ID,
    "media": "write the path alone",
    "blocks": "write each block below a dash",
    "array": "write each value below a dash",
}
