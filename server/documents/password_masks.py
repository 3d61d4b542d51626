"""Hashes of passwords. No answer shows them, even if their attribute is no `password` any more."""

import re
from typing import Any

_HASH = re.compile(r"\$(?:argon2(?:i|d|id)|2[abxy])\$[A-Za-z0-9+/=,.$]+")
HIDDEN = "(hidden)"


def without_hashes(text: str) -> str:
    """Return a text with each password hash masked."""
    return _HASH.sub(HIDDEN, text)


def mask_hashes(value: Any) -> Any:
    """Return a JSON value with each text masked that is a password hash."""
    if isinstance(value, str):
        return HIDDEN if value.lstrip()[:1] == "$" and _HASH.fullmatch(value.strip()) else value
    if isinstance(value, dict):
        return {key: mask_hashes(inner) for key, inner in value.items()}
    return [mask_hashes(inner) for inner in value] if isinstance(value, list) else value
