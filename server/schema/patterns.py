"""The patterns of schemas (`regex`): checked and matched by one library, which has what JavaScript's have.

Patterns come from schemas, texts from anyone: they are matched with a time limit, so that a pattern
that backtracks without end holds up nobody. Loaded when a schema has one.
"""

from functools import lru_cache
from typing import Any

import regex

MATCH_S = 0.1


def fault(pattern: str) -> str:
    """What is wrong with a pattern; "" where nothing is."""
    try:
        _compiled(pattern)
    except regex.error as error:
        return str(error)
    return ""


def mismatch(pattern: str, text: str) -> str:
    """Why a text does not match a pattern, as a sentence without its subject; "" where it does."""
    try:
        matched = _compiled(pattern).search(text, timeout=MATCH_S)
    except TimeoutError:
        return f'takes too long to match against "/{pattern}/"; shorten it'
    return "" if matched else f'must match the following: "/{pattern}/"'


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> Any:
    return regex.compile(pattern)
