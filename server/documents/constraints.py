"""Validation of values against the options of their attributes.

The values could be malicious, so a check must not take longer than linear time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from importlib import import_module
from typing import Any

from server.documents.values import components_at, is_empty
from server.formats.text_positions import KeyPath
from server.schema.model import Attribute, Type

MAX_EMAIL_CHARS = 320
UID_PATTERN = re.compile("^[A-Za-z0-9-_.~]*$")


@dataclass(frozen=True, slots=True)
class Limits:
    """Selection of the options to check.

    If `is_draft` is set, only maximums are checked. `default_max_length` applies to `string` attributes that
    have no `maxLength`.
    """

    is_draft: bool = False
    default_max_length: int | None = None


ALL_LIMITS = Limits()
REQUIRED_MESSAGE = "is required"


def option_errors(attribute: Attribute, value: Any, limits: Limits = ALL_LIMITS) -> list[str]:
    """Return a message for each option that a value violates. It does not contain the attribute's name."""
    if is_empty(value):
        return (
            [REQUIRED_MESSAGE] if attribute.required and not attribute.derived and not limits.is_draft else []
        )
    if attribute.type == "password":
        return []  # The value is a hash; `value_errors` checks the plain text.
    return value_errors(attribute, value, limits)


def value_errors(attribute: Attribute, value: Any, limits: Limits = ALL_LIMITS) -> list[str]:
    """Return the same messages as `option_errors` for a value that is not empty.

    A password must be plain text, not a hash.
    """
    if not isinstance(value, str):
        return [*_bounds(attribute, value, limits)]
    broken = [*_lengths(attribute, value, limits)]
    return broken if limits.is_draft else [*broken, *_patterns(attribute, value)]


def errors_within(
    type_: Type, values: Any, limits: Limits = ALL_LIMITS, path: KeyPath = ()
) -> Iterator[tuple[KeyPath, str]]:
    """Yield the path of each value that violates an option, and a message. Components are checked, too."""
    for position, attribute in type_.checked if limits.default_max_length is None else type_.numbered:
        value = values[position]
        at = (*path, attribute.name)
        for sentence in option_errors(attribute, value, limits):
            yield at, sentence
        for inner, component in components_at(attribute, value, at):
            yield from errors_within(component.type, component.values, limits, inner)


def _lengths(attribute: Attribute, value: str, limits: Limits) -> Iterator[str]:
    length = utf16_length(value)
    too_short = attribute.min_length is not None and length < attribute.min_length and not limits.is_draft
    # For an invalid address, one message is enough.
    if too_short and (attribute.type != "email" or is_email(value)):
        yield f"must be at least {attribute.min_length} characters"
    max_length = attribute.max_length
    if max_length is None and attribute.type == "string":
        max_length = limits.default_max_length
    if max_length is not None and length > max_length:
        yield f"must be at most {max_length} characters"


def utf16_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _bounds(attribute: Attribute, value: Any, limits: Limits) -> Iterator[str]:
    items = isinstance(value, tuple)
    if items and limits.is_draft:
        return
    size = len(value) if items else value
    if not isinstance(size, int | float | Decimal) or isinstance(size, bool):
        return
    if isinstance(size, float):  # Use the decimal digits: the exact value of the float 0.3 is less than 0.3.
        size = Decimal(repr(size))
    what = "field must have" if items else "must be"
    unit = " items" if items else ""
    if attribute.min is not None and not limits.is_draft and size < Decimal(str(attribute.min)):
        yield f"{what} greater than or equal to {attribute.min}{unit}"
    if attribute.max is not None and size > Decimal(str(attribute.max)):
        yield f"{what} less than or equal to {attribute.max}{unit}"


def _patterns(attribute: Attribute, value: str) -> Iterator[str]:
    if attribute.type == "email" and not value:
        yield "cannot be empty"
    if not value and not attribute.required:  # Forms send an empty string for an empty field.
        return
    if attribute.type == "email" and value and not is_email(value):
        yield "must be a valid email"
    if attribute.type == "uid" and not UID_PATTERN.fullmatch(value):
        yield f'must match the following: "/{UID_PATTERN.pattern}/"'
    if attribute.regex:
        wrong = import_module("server.schema.patterns").pattern_error(attribute.regex, value)
        if wrong:
            yield wrong


def is_email(text: str) -> bool:
    return len(text) <= MAX_EMAIL_CHARS and bool(import_module("server.documents.email").is_valid(text))
