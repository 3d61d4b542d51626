"""Text replacements and bracketed lists, for the editors."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from server.formats.text_positions import line_start, newline_of
from server.formats.tree import Plain, Tree, is_null, resolve_plain_values

REMOVE: Any = object()  # used as a key's new value, to remove the key


@dataclass(frozen=True, slots=True)
class Replacement:
    """Replacement of the text from index `start` to `end` (exclusive)."""

    start: int
    end: int
    text: str


def apply_replacements(text: str, replacements: list[Replacement]) -> str:
    """Apply replacements, which must not overlap, to a text."""
    # Insertions at the same index keep their order, and come before a removal at that index.
    ordered = sorted(replacements, key=lambda each: (each.start, each.end > each.start))
    for each in reversed(ordered):
        text = text[: each.start] + each.text + text[each.end :]
    return text


def is_same_value(old: Tree, new: Any) -> bool:
    """Return True if a value in a file is equal to a new value."""
    if isinstance(new, dict):
        return (
            isinstance(old, dict)
            and old.keys() == new.keys()
            and all(is_same_value(old[k], new[k]) for k in new)
        )
    if isinstance(new, list | tuple):
        return isinstance(old, list) and len(old) == len(new) and all(map(is_same_value, old, new))
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
            return _equal(resolve_plain_values(old), new)
    except (ValueError, ArithmeticError):
        return False
    return _equal(old, new)


def _equal(old: Any, new: Any) -> bool:
    # 1, True and 1.0 are different.
    return type(old) is type(new) and bool(old == new)


# --- brackets -------------------------------------------------------------------------------------

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\r\n]*)*")
_COMMENT = re.compile(r"[ \t]*#[^\r\n]*")

Span = tuple[int, int]  # the indexes at which an item starts and ends in a text
Part = tuple[int, str | None]  # index of an item (-1 if it is new), and its text (None if it is removed)


@dataclass(frozen=True, slots=True)
class _Item:
    """Item of a bracketed list or mapping.

    `lead` is the whitespace and comments before the item, `gap` is the text between the item and its comma,
    and `tail` is the comment after the item.
    """

    lead: str
    text: str
    gap: str = ""
    comma: bool = False
    tail: str = ""


@dataclass(frozen=True, slots=True)
class Brackets:
    """Parts of a bracketed list or mapping.

    If `trailing_comma` is set, a comma is allowed after the last item. `before_first`, `before_other`,
    `new_line` and `before_closing` are the whitespace to insert at these places.
    """

    opening: str
    items: list[_Item]
    closing: str
    before_first: str
    before_other: str
    new_line: str
    before_closing: str
    trailing_comma: bool

    @property
    def is_multiline(self) -> bool:
        return "\n" in self.before_other

    def render(self, parts: Iterable[Part]) -> str:
        """Return the new text of the list or mapping.

        Each part is a pair: the index of an old item (-1 for a new item), and the item's new text (None to
        remove it). At least one item must remain. Comments above removed items are kept.
        """
        placed: list[_Item] = []
        left = ""  # comments above removed items
        for i, text in parts:
            item = self.items[i] if i >= 0 else _Item("", "")
            if text is None:
                left += item.lead.rstrip() if "#" in item.lead else ""
                continue
            lead = self._lead(i, is_first=not placed)
            lead = left + (_on_new_line(lead, self.new_line) if left else lead)
            placed.append(replace(item, lead=lead, text=text))
            left = ""
        made, commented = self.opening, "#" in self.opening
        for item in placed:
            made += _on_new_line(item.lead, self.new_line) if commented else item.lead
            behind, commented = self._text_after(item, last=item is placed[-1])
            made += item.text + behind
        closing = left + (_on_new_line(self.closing, self.before_closing) if left else self.closing)
        return made + (_on_new_line(closing, self.before_closing) if commented else closing)

    def _lead(self, i: int, *, is_first: bool) -> str:
        # The comment above the item is kept.
        lead = self.items[i].lead if i >= 0 else ""
        if i >= 0 and ("#" in lead or is_first == (i == 0)):
            return lead
        return self.before_first if is_first else self.before_other

    def _text_after(self, item: _Item, *, last: bool) -> tuple[str, bool]:
        ends_line = "\n" in self.closing and "\n" not in item.gap
        if not last or self.items[-1].comma or (self.trailing_comma and item.comma and ends_line):
            gap = self.items[0].gap if not item.comma and "#" not in self.items[0].gap else item.gap
            if "\n" in gap and not item.comma:
                return item.tail + gap + ",", False
            return gap + "," + item.tail, bool(item.tail)
        gap = item.gap.rstrip() if "#" in item.gap else ""
        return gap + item.tail, bool(gap + item.tail)


def _on_new_line(lead: str, new_line: str) -> str:
    # Without a line break, the item would become part of the comment above it.
    return lead if lead.lstrip(" \t\r").startswith("\n") else new_line + lead.lstrip(" \t")


def split_brackets(
    text: str, start: int, end: int, spans: Sequence[Span], *, gap: str = " ", trailing_comma: bool = True
) -> Brackets | None:
    """Split a bracketed list or mapping into its parts. Return None if this is impossible.

    `spans` contains the start and end (exclusive) of each item. `gap` is the default whitespace after a
    comma.
    """
    if not spans or text[start] not in "[{":
        return None
    comment = _COMMENT.match(text, start + 1)
    at = comment.end() if comment else start + 1
    opening = text[start:at]
    items = []
    for n, (begin, behind) in enumerate(spans):
        lead = text[at:begin]
        found = _BLANK.match(text, behind)
        comma = found.end() if found else behind
        has_comma = text[comma] == ","
        if behind <= begin or not _BLANK.fullmatch(lead) or not (has_comma or n == len(spans) - 1):
            return None
        at = comma + 1 if has_comma else behind
        tail = _COMMENT.match(text, at)
        items.append(
            _Item(
                lead,
                text[begin:behind],
                text[behind:comma] if has_comma else "",
                has_comma,
                tail[0] if tail else "",
            )
        )
        at = tail.end() if tail else at
    if not _BLANK.fullmatch(text[at : end - 1]):
        return None
    newline = newline_of(text)
    line = text[line_start(text, start) : start]
    before_closing = newline + line[: len(line) - len(line.lstrip(" \t"))]
    before_other = _whitespace_between_items(
        items, newline + " " * (spans[0][0] - line_start(text, spans[0][0])), gap
    )
    new_line = before_other if "\n" in before_other else before_closing + "  "
    before_first = items[0].lead if "#" not in items[0].lead else new_line
    return Brackets(
        opening, items, text[at:end], before_first, before_other, new_line, before_closing, trailing_comma
    )


def _whitespace_between_items(items: list[_Item], below: str, gap: str) -> str:
    """Return the whitespace to put before a new item: the same as before the other items.

    If there is only one item, return `gap`, or `below` if a comment follows the item.
    """
    leads = [item.lead for item in items[1:]] or [item.lead for item in items if "\n" in item.lead]
    flat = [lead for lead in leads if "\n" not in lead]
    if flat:
        return flat[0]
    if not leads:
        return below if items[0].tail else gap
    lines = leads[-1].rpartition("\n")
    return ("\r\n" if lines[0].endswith("\r") else "\n") + lines[2]
