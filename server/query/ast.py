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
    """A comparison between a column and an operand.

    `column_index` is the column's index in a stored row. Null values can match only `$null` and `$notNull`,
    even if `negated` is set.
    """

    attribute: Attribute
    column_index: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class EmptyAttribute:
    """Condition that a relation, media or component attribute is empty or, if `null` is False, not empty.

    `path` is the attribute's dotted path, for error messages.
    """

    attribute: Attribute
    column_index: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class RelatedMatch:
    """Condition that at least one related item matches the filter `inner`.

    `path` is the attribute's dotted path, for error messages.
    """

    attribute: Attribute
    column_index: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """Conjunction of filters. An empty conjunction matches every document."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Disjunction of filters. An empty disjunction matches no document."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | EmptyAttribute | RelatedMatch | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """One attribute in the path of a sort key, such as the relation `author` in `author.name`."""

    attribute: Attribute
    column_index: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort key such as `author.name:desc`. `steps` are the relations that lead to the attribute."""

    steps: tuple[Step, ...]
    attribute: Attribute
    column_index: int
    descending: bool


class Selection(NamedTuple):
    """The fields and relations to return for each item, and how to filter and sort the items.

    `fields` is None for all visible fields.
    """

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """A populated attribute, or `localizations` if `attribute` is None.

    - `selections`: what to return for items of each type, by the type's uid.
    - `count`: whether to return only the number of items.
    """

    name: str
    attribute: Attribute | None
    column_index: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """The part of a list to return. `page` is None if the request gave an offset instead of a page number.

    `with_count` is set if the response contains the total number of documents.
    """

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """A request for documents of one content type.

    - `locales`: None means the site's default locale.
    - `drafts`: the uids of the content types whose drafts this query reads.
    - `text`, `publication`: the `_q` and `publicationFilter` parameters.
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
