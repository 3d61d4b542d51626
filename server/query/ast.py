"""Immutable syntax tree of a valid query. Frequent classes are named tuples, for speed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparison of a column. Null matches only `$null` and `$notNull`, even if `negated`."""

    attribute: Attribute
    column_index: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class EmptyAttribute:
    """Condition that an attribute is empty (`null`) or not empty."""

    attribute: Attribute
    column_index: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class RelatedMatch:
    """Condition that a related item matches `inner`."""

    attribute: Attribute
    column_index: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction. Without parts, it matches every document."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction. Without parts, it matches no document."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | EmptyAttribute | RelatedMatch | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """Attribute in a sort key's path, such as `author` in `author.name`."""

    attribute: Attribute
    column_index: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """Sort key such as `author.name:desc`. `steps` lead to the attribute."""

    steps: tuple[Step, ...]
    attribute: Attribute
    column_index: int
    descending: bool


class Selection(NamedTuple):
    """Fields, relations, filter and order for each item. `fields` is None for all fields."""

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """Populated attribute, or `localizations` if `attribute` is None.

    `selections` is keyed by uid. `count` returns only the number of items.
    """

    name: str
    attribute: Attribute | None
    column_index: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """Part of a list. `page` is None for an offset. `with_count` asks for the total."""

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """Request for documents of one type. `locales` is None for the default locale.

    `drafts` are the uids of types whose drafts it reads. `text` is `_q`.
    """

    type: Type
    selection: Selection = ALL_FIELDS
    page: Page = Page(0, 25, 1)
    locales: tuple[str, ...] | None = None
    draft: bool = False
    drafts: frozenset[str] = frozenset()
    text: str = ""
    publication: str | None = None
    with_status: bool = False
