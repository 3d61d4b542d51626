"""Masks for password hashes. Responses never contain a hash, even if the attribute with the hash is no longer
of the type `password`.
"""

import re
from typing import Any

_HASH = re.compile(r"\$(?:argon2(?:i|d|id)|2[abxy])\$[A-Za-z0-9+/=,.$]+")
HIDDEN = "(hidden)"


def without_hashes(text: str) -> str:
    """Mask all password hashes in a text."""
    return _HASH.sub(HIDDEN, text)


def mask_hashes(value: Any) -> Any:
    """Mask all strings in a JSON value that are password hashes."""
    if isinstance(value, str):
        return HIDDEN if value.lstrip()[:1] == "$" and _HASH.fullmatch(value.strip()) else value
    if isinstance(value, dict):
        return {key: mask_hashes(inner) for key, inner in value.items()}
    return [mask_hashes(inner) for inner in value] if isinstance(value, list) else value
