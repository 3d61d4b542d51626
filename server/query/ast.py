"""What a request asks for, as frozen values that were checked against the schema.

`query.parse` makes a Query of bracket notation. Everything below it works on these values and
never sees bad input. Those that every request makes are named tuples, which are made in a third of the time
of frozen dataclasses. Filters are in negation normal form: `$not` is pushed to the comparisons.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """A column compared: `negated` is true where the comparison is false and the value not null."""

    attribute: Attribute
    at: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """Whether a relation, media or component attribute holds nothing (`null`) or something."""

    attribute: Attribute
    at: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class Through:
    """Some document, file or component that an attribute holds meets the inner filter.

    `path` is the dotted path of attributes from the root, for the error that names it.
    """

    attribute: Attribute
    at: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """All parts hold; an empty one always does."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One part holds; an empty one never does."""

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
    """One sort key: the path to it, the column there, the direction."""

    steps: tuple[Step, ...]
    attribute: Attribute
    at: int
    descending: bool


class Selection(NamedTuple):
    """What is shown of a document or component: `fields` (None: all that are visible) and the rest."""

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """One populated attribute. `selections` says by uid what to show of what it holds; a component
    or document of a type that it does not have is left out. `attribute` is None for localizations.
    `count` shows how many there are in their place."""

    name: str
    attribute: Attribute | None
    at: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """A part of a list: `start` and `limit`, as pages or as an offset, with the total or without."""

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """One request for documents of a type.

    `locales` are those that it looks into, where the type has locales; None: the site's default one.
    `with_status`: the answer says of each document whether it is published, modified or a draft.
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
