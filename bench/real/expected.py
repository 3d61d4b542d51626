"""Values that the API is expected to return for an attribute, by the rules in docs/files.md."""
# A value without quotes is read as text, because its attribute determines its type. Only `json` and `array`
# attributes have the types of YAML 1.2.

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from bench.real.layout import MARKDOWN, Components, Document

Attribute = Mapping[str, Any]
Reader = Callable[[Any, Any], Any]
DATE = re.compile(r"(\d{4})-(\d\d?)-(\d\d?)")
MOMENT = re.compile(
    DATE.pattern
    + r"(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d)(?::(\d\d)(?:\.(\d+))?)?[ \t]*(Z|[+-]\d\d?(?::?\d\d)?)?)?"
)
FILE_NAME = re.compile(r"(\d{4}-\d\d-\d\d)-(.+)")
NOT_ATTRIBUTES = ("documentId", "createdAt", "updatedAt", "publishedAt", "locale")


class Unreadable(ValueError):
    """Raised if a value is invalid for the type of its attribute."""


def expected(document: Document, name: str, attribute: Attribute) -> Any:
    """Return the value that the API should return. Raises Unreadable."""
    reading, content_type = document.reading, document.type
    if name == content_type.options.get("otherKeys"):
        return _other_keys(document) or None
    if name == content_type.body and reading.path.endswith(MARKDOWN):
        body = _strip_body(reading.body or "")
        if body or name not in reading.typed:
            return body or None
    typed, text = reading.typed.get(name), reading.text.get(name)
    if name not in reading.typed:
        typed = text = _from_file_name(document).get(name, attribute.get("default"))
    return _read(attribute, typed, text, content_type.components)


def served_keys(document: Document) -> set[str]:
    draft_keys = set(document.type.options.get("draftWhen", {}))
    keys = {key for key, value in document.reading.typed.items() if value is not None}
    return keys - draft_keys - set(NOT_ATTRIBUTES)


def is_same(one: Any, other: Any) -> bool:
    # 1 is equal to 1.0, but not to `true`.
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(is_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_same, one, other))
    return bool(one == other)


def moment(text: str) -> str:
    """Convert a date with a time (in UTC by default) to the API's format. Raises Unreadable."""
    match = MOMENT.fullmatch(text.strip())
    if match is None:
        raise Unreadable(text)
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    thousandths = int((match[7] or "").ljust(3, "0")[:3])
    try:
        zoned = datetime(
            year, month, day, hour, minute, second, thousandths * 1000, timezone(_offset(match[8]))
        )
    except ValueError as error:
        raise Unreadable(text) from error
    return zoned.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _offset(zone: str | None) -> timedelta:
    digits = (zone or "Z").replace(":", "").lstrip("Z")
    if not digits:
        return timedelta()
    hours, minutes = digits[1:3], digits[3:5] or "0"
    size = timedelta(hours=int(hours), minutes=int(minutes))
    return -size if digits[0] == "-" else size


def _read(attribute: Attribute, typed: Any, text: Any, components: Components) -> Any:
    """Return the value of an attribute in a document or component. Raises Unreadable."""
    kind = attribute["type"]
    is_list = attribute.get("repeatable") or kind in ("relation", "media", "dynamiczone")
    if typed is None:
        return [] if is_list else None
    if kind == "dynamiczone":
        entries = zip(typed, text, strict=True)
        return [_read_component(one["__component"], one, other, components) for one, other in entries]
    if kind == "component" and is_list:
        entries = zip(typed, text, strict=True)
        return [_read_component(attribute["component"], one, other, components) for one, other in entries]
    if kind == "component":
        return _read_component(attribute["component"], typed, text, components)
    reader: Reader = _READERS.get(kind, _read_text)
    return reader(typed, text)


def _read_component(uid: str, typed: Any, text: Any, components: Components) -> dict[str, Any]:
    entries = {
        name: _read(attribute, typed.get(name, attribute.get("default")), text.get(name), components)
        for name, attribute in components[uid].items()
    }
    return {"__component": uid, **entries}


def _strip_body(text: str) -> str:
    text = re.sub(r"\A\r?\n", "", text)
    return re.sub(r"\r?\n\Z", "", text)


def _other_keys(document: Document) -> dict[str, Any]:
    keys = served_keys(document) - set(document.type.attributes)
    return {key: value for key, value in document.reading.typed.items() if key in keys}


def _from_file_name(document: Document) -> dict[str, str]:
    match = FILE_NAME.fullmatch(document.name.rpartition("/")[2])
    pattern = document.type.options.get("fileName")
    return {"date": match[1], "slug": match[2]} if match and pattern == "{date}-{slug}" else {}


def _read_text(typed: Any, text: Any) -> str:
    if isinstance(text, dict | list):
        raise Unreadable(str(text))
    if isinstance(text, bool):
        return str(text).lower()
    return str(text)


def _read_choice(typed: Any, text: Any) -> str | None:
    return _read_text(typed, text) or None


def _read_date(typed: Any, text: Any) -> str:
    match = DATE.match(_read_text(typed, text))
    if match is None:
        raise Unreadable(str(text))
    return f"{match[1]}-{int(match[2]):02d}-{int(match[3]):02d}"


def _read_moment(typed: Any, text: Any) -> str:
    return moment(_read_text(typed, text))


def _read_number(typed: Any, text: Any) -> float | None:
    try:
        number = float(_read_text(typed, text))
    except ValueError as error:
        raise Unreadable(str(text)) from error
    return int(number) if number.is_integer() else number


def _read_boolean(typed: Any, text: Any) -> bool:
    if isinstance(typed, bool):
        return typed
    raise Unreadable(str(text))


def _read_json(typed: Any, text: Any) -> Any:
    return typed


def _read_relation(typed: Any, text: Any) -> list[str]:
    values = text if isinstance(text, list) else [text]
    return list(dict.fromkeys(_read_text(value, value).replace("/", "--") for value in values))


def _read_media(typed: Any, text: Any) -> list[str]:
    values = text if isinstance(text, list) else [text]
    return [_read_text(value, value).removeprefix("/uploads/") for value in values]


_READERS: Mapping[str, Reader] = {
    "enumeration": _read_choice,
    "email": _read_choice,
    "date": _read_date,
    "datetime": _read_moment,
    "timestamp": _read_moment,
    "integer": _read_number,
    "float": _read_number,
    "decimal": _read_number,
    "boolean": _read_boolean,
    "json": _read_json,
    "array": _read_json,
    "relation": _read_relation,
    "media": _read_media,
    "blocks": _read_json,
}
