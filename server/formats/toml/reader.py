"""TOML parser and writer. The parser uses tomllib, which is eight times as fast as tomlkit."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

from server.formats.text_positions import DuplicateKey, Positions, position_at
from server.formats.toml.statements import (
    blanked,
    describe_duplicate_key,
    first_duplicate_of_last,
    toml_positions,
)
from server.formats.tree import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_NODES,
    Plain,
    SyntaxProblem,
    Tree,
    depth_of,
    size_of,
)

_WHERE = re.compile(r" \(at line (\d+), column (\d+)\)$| \(at end of document\)$")
_OPEN_STRING = re.compile(
    r"""Unterminated string|Expected "'|Illegal character '\\n'"""
)  # tomllib's messages about a string that is not closed
_QUOTES = re.compile(
    r'''#[^\n]*|"""(?:\\[\s\S]|[^\\])*?"{3,5}|"(?!"")(?:\\.|[^"\\\n])*"|'''
    r"""'''[\s\S]*?'{3,5}|'(?!'')[^'\n]*'|(["'])"""
)
MAX_DUPLICATES = 100  # maximum number of duplicate keys in one file
_LONG_NUMBER = re.compile(rf"[0-9_]{{{MAX_DIGITS + 1},}}")


def read_toml(
    text: str, positions: Positions | None = None, duplicates: list[DuplicateKey] | None = None
) -> dict[str, Tree]:
    """Parse TOML. Dates, times and floats stay text (`Plain`). Raises SyntaxProblem.

    Positions are added to `positions`, and duplicate keys to `duplicates`. If `duplicates` is None, a
    duplicate key is an error.
    """
    try:
        read = tomllib.loads(text, parse_float=_float)
    except tomllib.TOMLDecodeError as error:
        if duplicates is not None and (cleaned := blank_duplicate_keys(text, duplicates)) != text:
            return read_toml(cleaned, positions)
        raise _problem(str(error), text) from error
    except RecursionError as error:
        raise SyntaxProblem("the values are nested too deeply", None, "use fewer levels") from error
    except ValueError as error:  # The number has too many digits.
        raise _too_long(text) from error
    if text.count("[") + text.count("{") + text.count(".") > MAX_DEPTH and depth_of(read) > MAX_DEPTH:
        raise SyntaxProblem(
            f"the values are nested more than {MAX_DEPTH} levels deep", None, "use fewer levels"
        )
    if text.count("\n") + text.count(",") > MAX_NODES and size_of(read) > MAX_NODES:
        raise SyntaxProblem(f"the file has more than {MAX_NODES} values", None, "split the file")
    tree: dict[str, Tree] = _to_tree(read)
    if positions is not None:
        positions.update(toml_positions(text))
    return tree


def blank_duplicate_keys(text: str, duplicates: list[DuplicateKey] | None = None) -> str:
    """Overwrite all but the last occurrence of each duplicate key with spaces.

    Add the overwritten occurrences to `duplicates`.
    """
    for _ in range(MAX_DUPLICATES):
        try:
            tomllib.loads(text, parse_float=_float)
        except tomllib.TOMLDecodeError as error:
            end = _end_of_duplicate(str(error), text)
            earlier = first_duplicate_of_last(text[:end])
            if earlier is None:
                break
            if duplicates is not None:
                duplicates.append(describe_duplicate_key(text, earlier, end))
            text = blanked(text, earlier)
        except (ValueError, RecursionError):
            break  # The caller reports the error.
        else:
            break
    return text


def _end_of_duplicate(message: str, text: str) -> int:
    """Return the end of the value whose key tomllib has reported as a duplicate, as an index in the text.

    Return 0 for other errors.
    """
    where = _WHERE.search(message)
    if not where or not message.startswith("Cannot overwrite a value"):
        return 0
    if not where[1]:
        return len(text)
    starts = [0, *(found.end() for found in re.finditer("\n", text))]
    return starts[int(where[1]) - 1] + int(where[2]) - 1


def _to_tree(value: Any) -> Tree:
    """Convert a value from tomllib. Dates and times become strings in the API's format."""
    kind = type(value)
    if kind is dict:
        return {key: _to_tree(item) for key, item in value.items()}
    if kind is list:
        return [_to_tree(item) for item in value]
    if kind is datetime or kind is time:
        spec = "auto" if value.microsecond % 1000 else "milliseconds"
        return Plain(value.isoformat(timespec=spec).replace("+00:00", "Z"))
    return Plain(value.isoformat()) if kind is date else value


def _float(text: str) -> Plain:
    # Infinity and NaN are returned in YAML's notation, which no attribute accepts.
    sign = text[0] if text[0] in "+-" else ""
    word = text.removeprefix(sign)
    return Plain(f"{sign}.{word}") if word in ("inf", "nan") else Plain(text.replace("_", ""))


def _problem(message: str, text: str) -> SyntaxProblem:
    where = _WHERE.search(message)
    sentence = message[: where.start()] if where else message
    if _OPEN_STRING.match(sentence):
        line, column, _ = position_at(text, _open_quote(text))
        return SyntaxProblem(
            "invalid TOML: a quote is not closed", line, "close the quote on this line", column
        )
    if where and where[1]:
        line, column = int(where[1]), int(where[2])
        return SyntaxProblem(f"invalid TOML: {sentence}", line, _fix(sentence), column)
    line, column, _ = position_at(text, len(text))
    return SyntaxProblem(f"invalid TOML: {sentence}", line, "check the quotes and brackets nearby", column)


def _open_quote(text: str) -> int:
    return next((token.start() for token in _QUOTES.finditer(text) if token[1]), len(text))


def _fix(sentence: str) -> str:
    if "Invalid value" in sentence:
        return "put strings in quotes"
    if sentence.startswith("Cannot "):
        return "remove one of the two"
    return "check the quotes and brackets nearby"


def _too_long(text: str) -> SyntaxProblem:
    found = _LONG_NUMBER.search(text)
    line = text.count("\n", 0, found.start()) + 1 if found else None
    return SyntaxProblem(
        f"a number must not have more than {MAX_DIGITS} digits", line, "put the number in quotes"
    )


# --- writer ---------------------------------------------------------------------------------------

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_LINES_UNFIT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]|^(?:\+\+\+|<<<<<<<)", re.MULTILINE)
_LITERAL_UNFIT = re.compile(r"[\x00-\x08\x0a-\x1f\x7f']")


class NullError(ValueError):
    """Error for a value that contains a null, which TOML can't represent."""


def toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _quote(key)


def toml_value(value: Any, *, multiline: bool = False, quote: str = "") -> str:
    """Return a value as TOML. Mappings become inline tables. Raises NullError if the value contains a null.

    `quote` is the quotation mark to use if the value allows it.
    """
    if value is None:
        raise NullError("TOML has no null")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        text = format(value, "f")
        return text if "." in text else f"{text}.0"
    if isinstance(value, str):
        return _text(value, multiline=multiline, quote=quote)
    if isinstance(value, Mapping):
        inner = ", ".join(f"{toml_key(key)} = {toml_value(item)}" for key, item in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml_value, value))}]"
    return repr(value) if isinstance(value, float) else str(value)


def toml_entry(key: str, value: Any) -> str:
    return f"{toml_key(key)} = {toml_value(value, multiline=True)}\n"


def is_section(value: Any) -> bool:
    return bool(value) and (isinstance(value, Mapping) or _all_mappings(value))


def _all_mappings(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, Mapping) for item in value)


def toml_section(keys: Sequence[str], value: Any) -> str:
    """Return a mapping as the table `[keys]`, or a list of mappings as the array of tables `[[keys]]`."""
    name = ".".join(map(toml_key, keys))
    if isinstance(value, Mapping):
        return f"[{name}]\n{toml_mapping(value, keys)}"
    return "\n".join(f"[[{name}]]\n{toml_mapping(item, keys)}" for item in value)


def toml_mapping(values: Mapping[str, Any], keys: Sequence[str] = ()) -> str:
    text = "".join(toml_entry(key, item) for key, item in values.items() if not is_section(item))
    for key, item in values.items():
        if is_section(item):
            text += ("\n" if text else "") + toml_section((*keys, key), item)
    return text


def _text(text: str, *, multiline: bool, quote: str) -> str:
    if type(text) is Plain and _stands_bare(text):
        return str(text)
    if quote == "'" and not _LITERAL_UNFIT.search(text):
        return f"'{text}'"
    if multiline and "\n" in text.rstrip("\n") and not _LINES_UNFIT.search(text):
        escaped = text.replace("\\", "\\\\").replace('"""', '""\\"')
        return '"""\n' + (escaped[:-1] + '\\"' if escaped.endswith('"') else escaped) + '"""'
    return _quote(text)


def _quote(text: str) -> str:
    # TOML has the same escapes as JSON, but also requires an escape for the character DEL.
    return json.dumps(str(text), ensure_ascii=False).replace("\x7f", "\\u007f")


def _stands_bare(text: str) -> bool:
    try:
        tomllib.loads(f"_ = {text}")
    except ValueError:
        return False
    return text[:1] not in "\"'[{tf" and "\n" not in text
