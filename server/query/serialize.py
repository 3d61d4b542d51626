"""Serializer for query strings in bracket notation (spec.md 4.4)."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from qs_codec import EncodeOptions, encode

from server.errors import ValidationError
from server.query.brackets import MAX_DEPTH
from server.query.qs import MAX_PARAMETERS, MAX_QUERY_CHARS

_OPTIONS = EncodeOptions(encode_values_only=True, strict_null_handling=True)
_BRACKETS = str.maketrans({"[": "%5B", "]": "%5D"})


def query_string(params: Mapping[str, Any]) -> str:
    return str(encode(dict(params), _OPTIONS))


def untrusted_query_string(params: Mapping[str, Any]) -> str:
    """Return the query string for parameters from an untrusted source. Keys can contain any characters.

    Raises ValidationError if the query string exceeds the limits of the parser.
    """
    # The library repeats a key for each value in it, so the size is checked first.
    total = 0
    for number, chars in enumerate(_parameter_lengths(params, 0, 0), start=1):
        total += chars
        if total > MAX_QUERY_CHARS:
            raise ValidationError(f"The query has more than {MAX_QUERY_CHARS} characters, which is the limit")
        if number > MAX_PARAMETERS:
            raise ValidationError(f"The query has more than {MAX_PARAMETERS} parameters, which is the limit")
    return query_string(_with_encoded_keys(params))


def _parameter_lengths(value: Any, key_chars: int, depth: int) -> Iterator[int]:
    """Yield a lower bound for each parameter's length in characters. Only keys and strings are counted."""
    if depth > MAX_DEPTH + 1:
        raise ValidationError(f"The query is nested more than {MAX_DEPTH} levels deep, which is the limit")
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from _parameter_lengths(item, key_chars + len(key), depth + 1)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _parameter_lengths(item, key_chars + len("[0]"), depth + 1)
    else:
        yield key_chars + (len(value) if isinstance(value, str) else 0)


def _with_encoded_keys(value: Any) -> Any:
    """Percent-encode all keys. Brackets are encoded twice, because the parser treats `%5B` as `[`."""
    if isinstance(value, Mapping):
        encoded = ((quote(key.translate(_BRACKETS), "$*,:@/"), key) for key in value)
        return {name: _with_encoded_keys(value[key]) for name, key in encoded}
    return [_with_encoded_keys(item) for item in value] if isinstance(value, list) else value
