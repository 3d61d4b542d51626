"""Values at the limits of an attribute: lengths, bounds, patterns, and uniqueness."""

from collections.abc import Iterator, Sequence
from copy import deepcopy
from typing import Any

from bench.differential.model import MOMENTS, NUMBERS, TEXT, Attribute
from bench.differential.values import Chance

SIMPLE = (*TEXT, *NUMBERS, *MOMENTS, "boolean", "json", "password")
_TEXTS: Sequence[Any] = ("", " ", "🎈", "🎈🎈", "e\u0301e\u0301", "ab\n", "\nab", "a b", "AB", "ab1", "null")
_FRACTIONS: Sequence[Any] = (0, -0.0, 1.5, 0.1, -0.5, 0.30000000000000004, "0.5", "7", "", " 7", "7.0", 1e21)
_OTHERS: Sequence[Any] = ("", " ", 0, 1.5, "🎈", [], {}, "2024-02-29", "08:30", False)


def edge(chance: Chance, attribute: Attribute, existing_values: Sequence[Any]) -> Any:
    """Return a value at a limit of an attribute. `existing_values` are the attribute's current values."""
    roll = chance.random()
    if roll < 0.1:
        return None
    if existing_values and attribute.get("unique") and roll < 0.6:
        return _alike(chance, chance.choice(existing_values))
    if attribute["type"] in (*TEXT, "password"):
        return chance.choice((*_TEXTS, *_lengths(attribute)))
    if attribute["type"] in NUMBERS:
        return chance.choice((*_FRACTIONS, *_bounds(attribute), *_bounds(attribute)))
    return chance.choice(_OTHERS)


def _alike(chance: Chance, value: Any) -> Any:
    if not isinstance(value, str):
        return chance.choice((value, value, str(value)))
    return chance.choice((value, value, value, value.swapcase(), f"{value} ", f" {value}"))


def _lengths(attribute: Attribute) -> Iterator[str]:
    # Some of the letters consist of more than one code unit.
    for length in (attribute[key] for key in ("minLength", "maxLength") if key in attribute):
        for letter in ("a", "é", "🎈", "e\u0301"):
            yield from (letter * many for many in (length - 1, length, length + 1))


def _bounds(attribute: Attribute) -> Iterator[Any]:
    for bound in (attribute.get("min"), attribute.get("max")):
        if bound is not None:
            number = int(bound) if isinstance(bound, str) else bound
            yield from (bound, number, str(bound), number - 1, number + 1, number - 0.5, number + 0.01)


def with_null_inside(chance: Chance, blocks: Any) -> Any:
    """Return the blocks with a mistake at some depth, such as a null or a missing key."""
    made = deepcopy(blocks)
    places = list(_places(made))
    if not places:
        return None
    for _ in range(chance.choice((1, 1, 2))):
        container, key = chance.choice(places)
        value: Any = chance.choice((None, None, None, "", "🎈", 1.5, [], {}, [None]))
        if isinstance(container, dict) and chance.random() < 0.15:
            container.pop(key, None)
        else:
            container[key] = value
    return made


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    if isinstance(value, dict | list):
        for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(inner)
