"""Values → the text that stands for them in a TOML file."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from server.formats.tree import Plain

_BARE = re.compile(r"[A-Za-z0-9_-]+")
_LINES_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|^(?:\+\+\+|<<<<<<<)", re.MULTILINE)
_LITERAL_UNFIT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f']")


class NoNull(ValueError):
    """Raised for a null inside of a value: TOML has no form for it."""


def toml_key(key: str) -> str:
    """A key, in quotes where it needs them."""
    return key if _BARE.fullmatch(key) else _quoted(key)


def toml_value(value: Any, *, lines: bool = False, quote: str = "") -> str:
    """A value as it stands behind `=`; mappings inline. Raises NoNull.

    `lines` says whether text of several lines may be written as such, `quote` which quotes text had before.
    """
    if value is None:
        raise NoNull("TOML has no null")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}.0"
    if isinstance(value, str):
        return _text(value, lines=lines, quote=quote)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value) if isinstance(value, float) else str(value)


def toml_entry(key: str, value: Any) -> str:
    """`key = value` and a newline."""
    return f"{toml_key(key)} = {toml_value(value, lines=True)}\n"


def is_section(value: Any) -> bool:
    """Whether a value is written below a header of its own: a mapping, or a list of mappings."""
    return bool(value) and (isinstance(value, Mapping) or _all_mappings(value))


def _all_mappings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)


def toml_section(keys: Sequence[str], value: Any) -> str:
    """A mapping below `[keys]`, or a list of mappings each below `[[keys]]`."""
    name = ".".join(map(toml_key, keys))
    if isinstance(value, Mapping):
        return f"[{name}]\n{toml_mapping(value, keys)}"
    return "\n".join(f"[[{name}]]\n{toml_mapping(item, keys)}" for item in value)


def toml_mapping(values: Mapping[str, Any], keys: Sequence[str] = ()) -> str:
    """The entries of a mapping, and below them its sections; `keys` are those of the mapping itself."""
    text = "".join(toml_entry(key, item) for key, item in values.items() if not is_section(item))
    for key, item in values.items():
        if is_section(item):
            text += ("\n" if text else "") + toml_section((*keys, key), item)
    return text


def _text(text: str, *, lines: bool, quote: str) -> str:
    if type(text) is Plain and _stands_bare(text):
        return str(text)
    if quote == "'" and not _LITERAL_UNFIT.search(text):
        return f"'{text}'"
    if lines and "\n" in text.rstrip("\n") and not _LINES_UNFIT.search(text):
        escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
        return '"""\n' + (escaped[:-1] + '\\"' if escaped.endswith('"') else escaped) + '"""'
    return _quoted(text)


def _quoted(text: str) -> str:
    """Text in quotes on one line: TOML's escapes are JSON's, and it escapes one character more."""
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _stands_bare(text: str) -> bool:
    """Whether TOML reads some text without quotes, as a number, a date or a time."""
    try:
        tomllib.loads(f"_ = {text}")
    except ValueError:
        return False
    return text[:1] not in "\"'[{tf" and "\n" not in text
