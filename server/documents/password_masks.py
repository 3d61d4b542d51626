"""Masks for password hashes, which responses must never contain."""

import re
from typing import Any

_HASH = re.compile(r"\$(?:argon2(?:i|d|id)|2[abxy])\$[A-Za-z0-9+/=,.$]+")
HIDDEN = "(hidden)"


def without_hashes(text: str) -> str:
    return _HASH.sub(HIDDEN, text)


def mask_hashes(value: Any) -> Any:
    if isinstance(value, str):
        return HIDDEN if value.lstrip()[:1] == "$" and _HASH.fullmatch(value.strip()) else value
    if isinstance(value, dict):
        return {key: mask_hashes(inner) for key, inner in value.items()}
    return [mask_hashes(inner) for inner in value] if isinstance(value, list) else value
