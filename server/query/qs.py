"""Parser for query strings in bracket notation (spec.md 4.4)."""

import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote_plus, unquote_to_bytes

from server.errors import KeyNameError, ValidationError
from server.query.brackets import MAX_DEPTH, MAX_LIST_ITEMS, decode

MAX_PARAMETERS = 1000
MAX_QUERY_CHARS = 32_768
MAX_SORT_KEYS = 10
MAX_POPULATED_ATTRIBUTES = 2000  # limit for the whole query

_BAD_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INDEX = re.compile(r"[0-9]{1,9}")
_NUMBER = re.compile(r"0|[1-9][0-9]{0,8}")
_NUMBERED = re.compile(r"(?:^|[&\[])[0-9]+\]?[\[=]")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


def parse(text: str) -> dict[str, Any]:
    """Parse a query string into nested dicts and lists. Raises ValidationError if it is invalid."""
    if not text:
        return {}
    if len(text) > MAX_QUERY_CHARS:
        raise ValidationError(f"The query has {len(text)} characters; the limit is {MAX_QUERY_CHARS}")
    text = text.replace("%5B", "[").replace("%5D", "]").replace("%5b", "[").replace("%5d", "]")
    parts = text.split("&")
    _refuse_excess(parts)
    plain = _plain(text) if "%" in text else text
    if _CONTROL.search(plain):
        raise ValidationError("The query contains a control character")
    params = decode(parts if len(parts) <= MAX_LIST_ITEMS else _number_keys(parts))
    return _sort_numeric_keys_first(params) if _NUMBERED.search(plain) else params


def _plain(text: str) -> str:
    if _BAD_ESCAPE.search(text):
        raise ValidationError("Malformed percent-encoding in the query: encode a literal % as %25")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError as error:
        raise ValidationError("The query is not UTF-8") from error


def _sort_numeric_keys_first(value: Any) -> Any:
    """Sort numeric keys before others, as JavaScript does.

    If a query contains several errors, Bifolio then reports the same one as Strapi.
    """
    if isinstance(value, list):
        return [_sort_numeric_keys_first(item) for item in value]
    if not isinstance(value, dict):
        return value
    numbers = sorted((key for key in value if _NUMBER.fullmatch(key)), key=int)
    ordered = [*numbers, *(key for key in value if not _NUMBER.fullmatch(key))]
    return {key: _sort_numeric_keys_first(value[key]) for key in ordered}


def _refuse_excess(parts: Sequence[str]) -> None:
    if len(parts) > MAX_PARAMETERS:
        raise ValidationError(f"The query has {len(parts)} parameters; the limit is {MAX_PARAMETERS}")
    for part in parts:
        depth = part.partition("=")[0].count("[")
        if depth > MAX_DEPTH:
            raise ValidationError(f"The query is nested {depth} levels deep; the limit is {MAX_DEPTH}")


def _number_keys(parts: Sequence[str]) -> list[str]:
    # Add indexes such as `a[0]=…` to long lists, because parsing would otherwise take quadratic time.
    split = [part.partition("=") for part in parts]
    names = [unquote_plus(key).removesuffix("[]") for key, _, _ in split]
    repeated = {
        name
        for name, count in Counter(names).items()
        if count > MAX_LIST_ITEMS and name.count("[") < MAX_DEPTH
    }
    counters = {name: itertools.count() for name in repeated}
    return [
        f"{quote(name, safe='[]')}[{next(counters[name])}]{equals}{value}" if name in repeated else part
        for part, name, (_, equals, value) in zip(parts, names, split, strict=True)
    ]


def items(value: Any) -> list[Any]:
    """Return the items of a list, or the values of an object with numeric keys."""
    if isinstance(value, dict):
        return [value[k] for k in sorted(value, key=int)]
    return list(value)


def is_list(value: Any) -> bool:
    """Return True if a parsed value is a list, as in `a[]=…`, `a[0]=…` or a repeated key."""
    return isinstance(value, list) or (
        isinstance(value, dict) and bool(value) and all(map(_INDEX.fullmatch, value))
    )


# --- booleans -------------------------------------------------------------------------------------

BOOLEANS: Mapping[str, bool] = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


def read_boolean(value: object) -> bool | None:
    return BOOLEANS.get(value) if isinstance(value, str) else None


# --- mistakes -------------------------------------------------------------------------------------


class DeferredErrors:
    """Context manager that catches validation errors. Call `raise_first` later to raise the first one.

    It does not catch errors about keys, because these take priority.
    """

    __slots__ = ("_first",)

    def __init__(self) -> None:
        self._first: ValidationError | None = None

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        if not isinstance(error, ValidationError) or isinstance(error, KeyNameError):
            return False
        self._first = self._first or error
        return True

    def add(self, error: ValidationError) -> None:
        self._first = self._first or ValidationError(error.message, error.details)

    def raise_first(self) -> None:
        if self._first is not None:
            raise self._first
