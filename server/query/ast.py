"""Immutable syntax tree of a valid query. Frequent classes are named tuples, which are fast to create."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of a column. Null matches only `$null` and `$notNull`, even if `negated` is set."""

    attribute: Attribute
    column_index: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class EmptyAttribute:
    """Condition that a relation, media or component attribute is empty (`null`) or not empty."""

    attribute: Attribute
    column_index: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class RelatedMatch:
    """Condition that at least one related item matches the filter `inner`."""

    attribute: Attribute
    column_index: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """All filters match. An empty conjunction matches every document."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """One of the filters matches. An empty disjunction matches no document."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | EmptyAttribute | RelatedMatch | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """Attribute in the path of a sort key, such as the relation `author` in `author.name`."""

    attribute: Attribute
    column_index: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """Sort key such as `author.name:desc`. `steps` are the relations that lead to the attribute."""

    steps: tuple[Step, ...]
    attribute: Attribute
    column_index: int
    descending: bool


class Selection(NamedTuple):
    """What to return for each item. `fields` is None for all visible fields."""

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """A populated attribute, or `localizations` if `attribute` is None.

    `selections` is keyed by uid. `count` returns only the number of items.
    """

    name: str
    attribute: Attribute | None
    column_index: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """Part of a list. `page` is None if the request gave an offset. `with_count` asks for the total."""

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """Request for documents of one content type. `locales` is None for the default locale.

    `drafts` are the uids of types whose drafts it reads. `text` and `publication` are `_q` and
    `publicationFilter`.
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
