"""What the editors of YAML and JSON share: cuts of a text, and whether a tree already says a value."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from server.formats.scalars import is_null, typed
from server.formats.tree import Plain, Tree

REMOVE: Any = object()  # stands for a value where a key is to be removed


@dataclass(frozen=True, slots=True)
class Cut:
    """Characters `start` to `end` of a text become `text`."""

    start: int
    end: int
    text: str


def apply_cuts(text: str, cuts: list[Cut]) -> str:
    """The text after some cuts, which must not overlap.

    Insertions at one index keep their order, and come before what is cut out there.
    """
    ordered = sorted(cuts, key=lambda cut: (cut.start, cut.end > cut.start))
    for cut in reversed(ordered):
        text = text[: cut.start] + cut.text + text[cut.end :]
    return text


def same(old: Tree, new: Any) -> bool:
    """Whether a tree that was read from a file already says a value."""
    if isinstance(new, dict):
        return isinstance(old, dict) and old.keys() == new.keys() and all(same(old[k], new[k]) for k in new)
    if isinstance(new, list | tuple):
        return isinstance(old, list) and len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, dict | list):
        return False
    if is_null(new) or is_null(old):
        return is_null(new) and is_null(old)
    if isinstance(new, str):
        return isinstance(old, str) and str(old) == str(new)
    try:
        if isinstance(new, Decimal) and (type(old) is Plain or type(old) is int):
            return Decimal(old) == new
        if type(old) is Plain:
            return _equal(typed(old), new)
    except (ValueError, ArithmeticError):
        return False
    return _equal(old, new)


def _equal(old: Any, new: Any) -> bool:
    """Equality that tells 1 from True and from 1.0."""
    return type(old) is type(new) and bool(old == new)
