"""Serializer for query strings in bracket notation (spec.md 4.4)."""

from collections.abc import Mapping
from typing import Any

from qs_codec import EncodeOptions, encode

_OPTIONS = EncodeOptions(encode_values_only=True, strict_null_handling=True)


def query_string(params: Mapping[str, Any]) -> str:
    return str(encode(dict(params), _OPTIONS))
