"""Content types that a query depends on."""

from collections.abc import Iterator, Set

from server.query.ast import And, EmptyAttribute, Filter, Or, Query, RelatedMatch, Selection


def mentions(query: Query, uids: Set[str]) -> bool:
    return any(uid in uids for uid in mentioned_types(query))


def mentioned_types(query: Query) -> Iterator[str]:
    yield query.type.uid
    yield from _types_in_selection(query.selection)


def conditions(selection: Selection) -> Iterator[str]:
    yield from _types_in_filter(selection.filter)
    for key in selection.sort:
        for step in key.steps:
            yield step.target.uid


def _types_in_selection(selection: Selection) -> Iterator[str]:
    yield from conditions(selection)
    for node in selection.populate:
        for uid, inner in node.selections.items():
            yield uid
            yield from _types_in_selection(inner)


def _types_in_filter(filter_: Filter) -> Iterator[str]:
    if isinstance(filter_, And | Or):
        for part in filter_.parts:
            yield from _types_in_filter(part)
    elif isinstance(filter_, EmptyAttribute):
        if filter_.target is not None:
            yield filter_.target.uid
    elif isinstance(filter_, RelatedMatch):
        yield filter_.target.uid
        yield from _types_in_filter(filter_.inner)
