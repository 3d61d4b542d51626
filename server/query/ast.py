"""Immutable syntax tree of a query that is valid for the schema.

Classes that every request instantiates are named tuples, which are three times as fast to create.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison between a column and an operand. Null never matches, even if `negated` is set."""

    attribute: Attribute
    at: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A condition that a relation, media or component attribute is empty or, if `null` is false, that it is
    not empty.
    """

    attribute: Attribute
    at: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class Through:
    """A condition that at least one related item matches the filter `inner`. `path` is the dotted path of the
    attribute, for error messages.
    """

    attribute: Attribute
    at: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction of filters. An empty one matches every document."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction of filters. An empty one matches no document."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | Missing | Through | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """One relation, media or component attribute in the path of a sort key, such as `author` in
    `author.name`.
    """

    attribute: Attribute
    at: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort key, such as `author.name:desc`: path, attribute and direction."""

    steps: tuple[Step, ...]
    attribute: Attribute
    at: int
    descending: bool


class Selection(NamedTuple):
    """The fields and relations of items to return, and a filter and sort keys for these items. `fields` is
    None for all visible fields.
    """

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """One populated attribute, or `localizations` if `attribute` is None.

    - `selections`: what to return, by uid of the item's type.
    - `count`: whether to return only the number of items.
    """

    name: str
    attribute: Attribute | None
    at: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """The part of a list to return, requested by page or by offset.

    If `with_count` is set, the response contains the total number of documents.
    """

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """A request for documents of one content type.

    - `locales`: None means the site's default locale.
    - `drafts`: the uids of the content types whose drafts this query reads.
    - `text`, `publication`: the parameters `_q` and `publicationFilter`.
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
