"""Documents in the order of one column: nulls first ascending, equal values in default order.

Such an order answers sorted pages without sorting, and comparisons with a value without scanning.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from server.documents import Document, default_order
from server.schema import Attribute
from server.sequence import Sequence

_LAST = "\U0010ffff"  # after every moment
UNORDERED = frozenset({"json", "array", "blocks"})


@dataclass(frozen=True, slots=True)
class OrderKey:
    """Which order: of the column at a position, in a locale and status, ascending or descending."""

    at: int
    locale: str
    status: str
    descending: bool = False


class _Reversed:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: "_Reversed") -> bool:
        return bool(other.value < self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Reversed) and bool(self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value)


def sort_key(key: OrderKey) -> Callable[[Document], tuple[Any, ...]]:
    """The key by which documents stand in an order."""
    at = key.at
    if key.descending:
        return lambda d: (d.row[at] is None, _Reversed(d.row[at]), *default_order(d))
    return lambda d: (d.row[at] is not None, d.row[at], *default_order(d))


def make_order(documents: list[Document], key: OrderKey) -> Sequence[Document]:
    """The order of documents that are given in default order."""
    at = key.at
    nulls = [d for d in documents if d.row[at] is None]
    rest = [d for d in documents if d.row[at] is not None]
    rest.sort(key=lambda d: d.row[at], reverse=key.descending)
    ordered = rest + nulls if key.descending else nulls + rest
    return Sequence.presorted(ordered, sort_key(key))


def equal_to(order: Sequence[Document], value: Any) -> list[Document]:
    """The documents of an ascending order that have a value, in default order."""
    return order.between((True, value), (True, value, _LAST))


def is_orderable(attribute: Attribute) -> bool:
    """Whether an attribute's values can be put in order as they are."""
    return attribute.scalar and attribute.type not in UNORDERED and attribute.name != "id"
