"""Immutable syntax tree of a valid query.

Classes with many instances are named tuples, for speed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparison of an attribute's value with an operand.

    A null value matches only `$null` and `$notNull`, even if `negated` is set.
    """

    attribute: Attribute
    column_index: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class EmptyAttribute:
    """Condition that a relation, media attribute or component is empty (if `null` is set) or not empty."""

    attribute: Attribute
    column_index: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class RelatedMatch:
    """Condition that at least one related document, media file or component matches `inner`."""

    attribute: Attribute
    column_index: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of filters. If `parts` is empty, it matches every document."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of filters. If `parts` is empty, it matches no document."""

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
    """Sort key such as `author.name:desc`. `steps` is the path to the attribute (here, `author`)."""

    steps: tuple[Step, ...]
    attribute: Attribute
    column_index: int
    descending: bool


class Selection(NamedTuple):
    """Fields, filter, order and populated attributes of a list of items.

    If `fields` is None, the items have all fields.
    """

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """A populated attribute. For `localizations`, `attribute` is None.

    `selections` maps the uid of each possible target type to its selection. If `count` is set, only the
    number of items is returned.
    """

    name: str
    attribute: Attribute | None
    column_index: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """The requested part of a list. If the request contains `start` or `limit`, `page` is None.

    If `with_count` is set, the total number of items is returned, too.
    """

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """Request for documents of one content type. If `locales` is None, the default locale is used.

    `drafts` contains the uids of the content types whose drafts are read. `text` is the value of `_q`.
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
