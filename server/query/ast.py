"""Syntax tree of a query: immutable and validated against the schema.

`query.parse` creates a Query from bracket notation, so later steps never see invalid input. Filters are in
negation normal form: `$not` is pushed down to the comparisons. Classes that every request instantiates are
named tuples, because creating these takes a third of the time of frozen dataclasses.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """Comparison of a column with an operand. If `negated`, non-null values match that
    fail the comparison.
    """

    attribute: Attribute
    at: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """Test of a relation, media or component attribute: it must be empty if `null`, else non-empty."""

    attribute: Attribute
    at: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class Through:
    """Condition on related items: at least one document, file or component must match the inner filter.

    `path` is the dotted attribute path from the root, for error messages.
    """

    attribute: Attribute
    at: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction. Without parts, it is true."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction. Without parts, it is false."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | Missing | Through | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """One attribute on the path to a sort key, and its target type."""

    attribute: Attribute
    at: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort key: the path to the column, the column, and the direction."""

    steps: tuple[Step, ...]
    attribute: Attribute
    at: int
    descending: bool


class Selection(NamedTuple):
    """What to return from documents or components. If `fields` is None, all visible fields are returned."""

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """One populated attribute.

    - `selections`: by uid, what to return from items of that type. Items of other types are omitted.
    - `attribute` is None for localizations.
    - `count`: return the number of items instead of the items.
    """

    name: str
    attribute: Attribute | None
    at: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """A part of a list, requested by page or by offset. With `with_count`, the response
    includes the total.
    """

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """A request for documents of one type.

    - `locales`: the locales to search if the type is localized; None means the site's default locale.
    - `drafts`: uids of the types whose drafts may be read.
    - `text`: the text to search for (`_q`).
    - `publication`: the `publicationFilter`.
    - `with_status`: return for each document whether it is published, modified or a draft.
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
