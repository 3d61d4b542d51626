"""Whether a query is about documents of some types: shows them, or filters or sorts by them."""

from collections.abc import Set

from server.query.ast import And, Filter, Missing, Or, Query, Selection, Through


def mentions(query: Query, uids: Set[str]) -> bool:
    """Whether a query is about documents of one of some types."""
    return query.type.uid in uids or _selects(query.selection, uids)


def _selects(selection: Selection, uids: Set[str]) -> bool:
    return (
        any(
            uid in uids or _selects(inner, uids)
            for node in selection.populate
            for uid, inner in node.selections.items()
        )
        or any(step.target.uid in uids for key in selection.sort for step in key.steps)
        or _filters(selection.filter, uids)
    )


def _filters(filter_: Filter, uids: Set[str]) -> bool:
    if isinstance(filter_, And | Or):
        return any(_filters(part, uids) for part in filter_.parts)
    if isinstance(filter_, Missing):
        return filter_.target is not None and filter_.target.uid in uids
    return isinstance(filter_, Through) and (filter_.target.uid in uids or _filters(filter_.inner, uids))
