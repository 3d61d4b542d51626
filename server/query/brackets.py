"""Parser for bracket notation such as `a[b][c]=1&a[d][]=2`, as in the JavaScript library `qs`."""

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_to_bytes

MAX_DEPTH = 20
MAX_LIST_ITEMS = 100

_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
_INDEXED = re.compile(r"\[[0-9]")
_MISSING_ITEM = object()  # placeholder for a missing index, such as index 0 in `a[1]=x`; removed at the end


class _LongList(dict[str, Any]):
    """List with more than MAX_LIST_ITEMS items, stored as a dictionary by index, as in the library `qs`."""


def decode(parts: Iterable[str]) -> dict[str, Any]:
    """Parse the parts of a query string, such as `key=value`. The value of a part without `=` is None.

    Brackets in keys must not be percent-encoded.
    """
    flat: dict[str, Any] = {}
    for part in parts:
        end = part.find("]=") + 1 or part.find("=")  # A name in brackets may contain `=`.
        key, value = (_text(part), None) if end < 0 else (_text(part[:end]), _text(part[end + 1 :]))
        if key:
            flat[key] = _append(flat[key], value) if key in flat else value
    params: dict[str, Any] = {}
    for key, value in flat.items():
        params = _merge(params, _nest_value(key, value))
    if any(map(_INDEXED.search, flat)):
        params = _without_missing_items(params)
    return params


def _text(part: str) -> str:
    if "+" in part:
        part = part.replace("+", " ")
    return unquote_to_bytes(part).decode() if "%" in part else part


def _nest_value(key: str, value: Any) -> Any:
    """Convert a key and its value to nested objects: `a[b][]` gives `{"a": {"b": [value]}}`."""
    name, inner = _split(key)
    for part in reversed(inner):
        if part == "":
            if not isinstance(value, _LongList):
                value = _limited(value if isinstance(value, list) else [value])
        elif part.isdecimal() and _INDEX.fullmatch(part) and int(part) < MAX_LIST_ITEMS:
            value = [*[_MISSING_ITEM] * int(part), value]
        else:
            value = {part: value}
    return {name: value} if name else value


def _split(key: str) -> tuple[str, list[str]]:
    """Split `a[b][c]` into `a` and `["b", "c"]`."""
    begin = key.find("[")
    if begin < 0:
        return key, []
    name, inner = key[:begin], list[str]()
    while begin >= 0:
        end = _closing_bracket(key, begin) if len(inner) < MAX_DEPTH else -1
        if end < 0:
            inner.append(key[begin:])
            break
        inner.append(key[begin + 1 : end])
        begin = key.find("[", end)
    return name, inner


def _closing_bracket(key: str, begin: int) -> int:
    level, at = 1, begin
    while level:
        closing = key.find("]", at + 1)
        if closing < 0:
            return -1
        level += key.count("[", at + 1, closing) - 1
        at = closing
    return at


def _merge(target: Any, source: Any) -> Any:
    if source is None:
        return target
    if isinstance(source, list):
        return _merge_list(target, source)
    if isinstance(source, dict):
        return _merge_dict(target, source)
    if isinstance(target, list | _LongList):
        return _append(target, source)
    if isinstance(target, dict):
        return [target, source] if source else target
    return [target, source]


def _merge_dict(target: Any, source: dict[str, Any]) -> Any:
    if isinstance(target, list):
        target = type(source)(_by_index(target))
    if isinstance(target, dict):
        for key, value in source.items():
            target[key] = _merge(target[key], value) if key in target else value
        return target
    if isinstance(source, _LongList):
        return _LongList(_by_index([target, *source.values()]))
    return [target, source]


def _merge_list(target: Any, source: list[Any]) -> Any:
    if isinstance(target, dict):
        return _merge_dict(target, _by_index(source))
    if not isinstance(target, list):
        return _limited([target, *source])
    for at, value in enumerate(source):
        if value is _MISSING_ITEM:
            continue
        target.extend([_MISSING_ITEM] * (at + 1 - len(target)))
        if target[at] is _MISSING_ITEM:
            target[at] = value
        elif isinstance(target[at], dict) and isinstance(value, dict):
            target[at] = _merge_dict(target[at], value)
        else:
            target.append(value)
    return _limited(target)


def _append(values: Any, value: Any) -> Any:
    if isinstance(values, _LongList):
        last = max((int(key) for key in values if key.isdecimal()), default=-1)
        return _LongList({**values, str(last + 1): value})
    return _limited([*values, value] if isinstance(values, list) else [values, value])


def _limited(values: list[Any]) -> list[Any] | _LongList:
    return values if len(values) <= MAX_LIST_ITEMS else _LongList(_by_index(values))


def _by_index(values: Iterable[Any]) -> dict[str, Any]:
    return {str(at): value for at, value in enumerate(values) if value is not _MISSING_ITEM}


def _without_missing_items(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_missing_items(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_missing_items(item) for item in value if item is not _MISSING_ITEM]
    return value
