"""Permission checks for queries (spec.md 4.5, 7.3)."""

from dataclasses import replace
from operator import is_

from server.auth.draft_visibility import DRAFT_REVEALING_FILTERS, may_read_drafts
from server.auth.permissions import Actor, forbidden, may_find
from server.errors import invalid_key
from server.query.ast import (
    ALL_FIELDS,
    And,
    Compare,
    EmptyAttribute,
    Filter,
    Node,
    Or,
    Query,
    RelatedMatch,
    Selection,
    Sort,
)
from server.schema.model import Attribute, Schema, Type


def narrow_query(query: Query, actor: Actor, schema: Schema, *, own_draft: bool = False) -> Query:
    """Return the query, restricted to what the actor may read.

    Set `own_draft` if the query reads a draft that the actor has just written. Raises ForbiddenError if the
    query reads drafts that the actor may not read, and KeyNameError if a filter or sort contains a key that
    the actor may not use.
    """
    readable: set[str] = set()
    if own_draft and query.with_status and not may_read_drafts(actor, query.type):
        # With `with_status`, the response would reveal whether there are other drafts.
        query = query._replace(with_status=False)
    if query.draft or query.with_status or query.publication in DRAFT_REVEALING_FILTERS:
        readable = {t.uid for t in schema.content_types if may_read_drafts(actor, t)}
        if own_draft and query.type.draft_publish and query.type.uid not in readable:
            # The actor is allowed to write this draft but not to read it, so only its ids are returned.
            return query._replace(selection=Selection(fields=()), drafts=frozenset({query.type.uid}))
        if query.type.draft_publish and query.type.uid not in readable:
            raise forbidden(actor, query.type.singular, "readDraft")
    selection = _narrow_selection(query.selection, actor, "filters", "sort")
    if query.publication in DRAFT_REVEALING_FILTERS:
        _check_compared(selection, actor, schema)
    drafts = frozenset(readable if query.draft else ())
    same = selection is query.selection and drafts == query.drafts
    return query if same else query._replace(selection=selection, drafts=drafts)


def _check_compared(selection: Selection, actor: Actor, schema: Schema) -> None:
    # The query compares drafts with published versions, so it would reveal information about drafts of
    # populated types.
    for node in selection.populate:
        for uid, inner in node.selections.items():
            type_ = schema.types[uid]
            if type_.draft_publish and not may_read_drafts(actor, type_):
                raise forbidden(actor, type_.singular, "readDraft")
            _check_compared(inner, actor, schema)


def _narrow_selection(selection: Selection, actor: Actor, filters: str, sort: str) -> Selection:
    if selection is ALL_FIELDS:
        return selection
    _check_filter(selection.filter, actor, filters)
    _check_sort(selection.sort, actor, sort)
    if not selection.populate:
        return selection
    nodes = tuple(left for node in selection.populate if (left := _narrow_node(node, actor)) is not None)
    same = len(nodes) == len(selection.populate) and all(map(is_, nodes, selection.populate))
    return selection if same else selection._replace(populate=nodes)


def _narrow_node(node: Node, actor: Actor) -> Node | None:
    checked = node.attribute is None or node.attribute.type == "relation"
    left = {
        uid: _narrow_selection(selection, actor, "populate", "populate")
        for uid, selection in node.selections.items()
        if not checked or may_find(actor, uid)
    }
    if checked and not left:
        return None
    same = len(left) == len(node.selections) and all(map(is_, left.values(), node.selections.values()))
    return node if same else replace(node, selections=left)


def _check_filter(filter_: Filter, actor: Actor, param: str) -> None:
    if isinstance(filter_, And | Or):
        for part in filter_.parts:
            _check_filter(part, actor, param)
    elif isinstance(filter_, RelatedMatch | EmptyAttribute):
        _check_path(filter_.attribute, filter_.target, filter_.path, actor, param)
        if isinstance(filter_, RelatedMatch):
            _check_filter(filter_.inner, actor, param)
    else:
        assert isinstance(filter_, Compare)


def _check_sort(keys: tuple[Sort, ...], actor: Actor, param: str) -> None:
    for key in keys:
        for step in key.steps:
            _check_path(step.attribute, step.target, step.path, actor, param)


def _check_path(attribute: Attribute, target: Type | None, path: str, actor: Actor, param: str) -> None:
    if attribute.type == "relation" and target is not None and not may_find(actor, target.uid):
        raise invalid_key(attribute.name, path, param)
