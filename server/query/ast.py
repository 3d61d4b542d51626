"""Syntax tree of a query: frozen values, checked against the schema.

`query.parse` builds a Query from bracket notation, so later steps never see invalid input. Values that every
request builds are named tuples, which are created in a third of the time of frozen dataclasses. Filters are
in negation normal form: `$not` is pushed down to the comparisons.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparison of a column; `negated` matches values that are not null and fail the comparison."""

    attribute: Attribute
    at: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """Test whether a relation, media or component attribute is empty (`null`) or not."""

    attribute: Attribute
    at: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class Through:
    """Condition on a related document, file or component: at least one must meet the inner filter.

    `path` is the dotted path of attributes from the root, for error messages.
    """

    attribute: Attribute
    at: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction; without parts, it is always true."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction; without parts, it is always false."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | Missing | Through | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """One attribute on the path to a sort key, and the type that it leads to."""

    attribute: Attribute
    at: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort key: the path to it, its column and direction."""

    steps: tuple[Step, ...]
    attribute: Attribute
    at: int
    descending: bool


class Selection(NamedTuple):
    """The part of a document or component to return; `fields` None means all visible fields."""

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """One populated attribute.

    `selections` maps uids to what is returned of documents or components of that type; types that are missing
    there are left out. `attribute` is None for localizations. `count` returns the number of items instead of
    them.
    """

    name: str
    attribute: Attribute | None
    at: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """A part of a list, requested by page or by offset; `with_count` adds the total to the response."""

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """A request for documents of one type.

    `locales` are the locales to search if the type is localised; None means the site's default locale.
    `with_status` adds to each document whether it is published, modified or a draft.
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
