"""Syntax tree of a query. It is immutable and valid for the schema.

`query.parse` creates a Query from bracket notation and rejects invalid input, so all later steps can rely on
valid queries. Filters are in negation normal form, which means that `$not` is pushed down to the comparisons.
Classes that every request instantiates are named tuples, because creating a named tuple takes only a third of
the time that creating a frozen dataclass takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from server.query.operators import Operator
from server.schema.model import Attribute, Type


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison between a column and an operand.

    If `negated` is set, it matches values for which the comparison is false. Null never matches.
    """

    attribute: Attribute
    at: int
    operator: Operator
    operand: Any
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Missing:
    """A test whether a relation, media or component attribute is empty. If `null` is false, the test is
    reversed: it passes if the attribute is not empty.
    """

    attribute: Attribute
    at: int
    path: str
    target: Type | None
    null: bool


@dataclass(frozen=True, slots=True)
class Through:
    """A condition on related items. At least one document, file or component must match the inner filter.

    `path` is the dotted path of the attribute, starting from the requested content type. Error messages
    contain this path.
    """

    attribute: Attribute
    at: int
    target: Type
    inner: "Filter"
    path: str


@dataclass(frozen=True, slots=True)
class And:
    """A conjunction of filters. Without parts, it matches every document."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """A disjunction of filters. Without parts, it matches no document."""

    parts: tuple["Filter", ...]


Filter: TypeAlias = Compare | Missing | Through | And | Or
NO_FILTER = And(())


@dataclass(frozen=True, slots=True)
class Step:
    """One relation, media or component attribute that a sort key passes through, such as `author` in
    `sort=author.name`. `target` is the type of the related items.
    """

    attribute: Attribute
    at: int
    target: Type
    path: str


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort key, such as `author.name:desc`: the steps that lead to the related item, the attribute to
    sort by, and the direction.
    """

    steps: tuple[Step, ...]
    attribute: Attribute
    at: int
    descending: bool


class Selection(NamedTuple):
    """The fields and relations to return, with the filter and sort keys for the items. If `fields` is None,
    all visible fields are returned.
    """

    fields: tuple[str, ...] | None = None
    filter: Filter = NO_FILTER
    sort: tuple[Sort, ...] = ()
    populate: tuple["Node", ...] = ()


ALL_FIELDS = Selection()


@dataclass(frozen=True, slots=True)
class Node:
    """One populated attribute.

    - `selections`: maps the uid of each type of item to what is returned from items of that type. Items whose
      type has no entry are omitted.
    - `attribute`: the populated attribute, or None for `localizations`.
    - `count`: whether to return only the number of items.
    """

    name: str
    attribute: Attribute | None
    at: int
    selections: Mapping[str, Selection]
    count: bool = False


class Page(NamedTuple):
    """The part of a list to return, requested either by page or by offset.

    If `with_count` is set, the response contains the total number of documents.
    """

    start: int
    limit: int
    page: int | None
    with_count: bool = True


class Query(NamedTuple):
    """A request for documents of one content type.

    - `locales`: the locales to search if the content type is localized. None means the site's default locale.
    - `drafts`: the uids of the content types whose drafts may be read.
    - `text`: the text to search for, from the parameter `_q`.
    - `publication`: the value of the parameter `publicationFilter`.
    - `with_status`: whether to return the publication status of each document (published, modified or draft).
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
