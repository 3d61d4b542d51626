"""Request bodies for webhooks."""

from collections.abc import Mapping
from typing import Any

import orjson

from server.documents.document import DRAFT, PUBLISHED
from server.documents.values import derive_id
from server.errors import LimitError
from server.events.model import Event
from server.events.webhooks.delivery_worker import Deliverer
from server.index.budget import Budget
from server.index.effective_version import edited_status
from server.index.snapshot import View
from server.jobs.job import Timing
from server.query.ast import ALL_FIELDS, Node, Query, Selection
from server.query.queryable_attributes import targets_of
from server.schema.model import ACCOUNT_UIDS, UPLOAD, Schema, Type
from server.service.render import Renderer, render_files
from server.site.site import Site, State

# --- body -----------------------------------------------------------------------------------------

# fields at the top level of a body; all other fields are in `bifolio`
_TOP = ("event", "createdAt", "model", "uid")


def body_of(state: State, event: Event, *, drafts: bool = True) -> bytes:
    """Return the body of a request to a webhook. If `drafts` is False, drafts are reduced to their ids."""
    said = event.shown()
    body: dict[str, Any] = {name: said[name] for name in _TOP if said[name] is not None}
    if event.is_media:
        body = {**{name: said[name] for name in _TOP[:2]}, "media": _media(state, event)}
    elif event.document_id:
        body["entry"] = _entry(state, event, drafts)
    body["bifolio"] = {name: value for name, value in said.items() if name not in _TOP}
    return orjson.dumps(body)


def _media(state: State, event: Event) -> orjson.Fragment | Mapping[str, Any]:
    type_ = state.schema.types[UPLOAD]
    settings, snapshot = state.settings, state.snapshot
    file = snapshot.get(type_, event.document_id, settings.locales.default, PUBLISHED)
    if file is None:
        return {
            "id": derive_id(type_.uid, event.document_id, settings.locales.default),
            "documentId": event.document_id,
        }
    return orjson.Fragment(render_files(View(snapshot, settings), Query(type_), [file])[0])


def _entry(state: State, event: Event, drafts_too: bool) -> orjson.Fragment | Mapping[str, Any]:
    """Return the JSON of the event's document.

    For a deleted document, or for a draft if `drafts_too` is False, it contains only ids.
    """
    type_, settings = state.schema.types.get(event.uid), state.settings
    ids = {
        "id": derive_id(event.uid, event.document_id, event.locale),
        "documentId": event.document_id,
        "locale": event.locale,
    }
    if type_ is None or event.kind == "entry.delete":
        return ids
    published = event.kind == "entry.publish" or (
        event.status == PUBLISHED and event.kind != "entry.unpublish"
    )
    status = PUBLISHED if published else edited_status(type_)
    document = state.snapshot.get(type_, event.document_id, event.locale, status)
    if document is None or not (published or drafts_too):
        return ids
    drafts = frozenset(t.uid for t in state.schema.content_types if t.draft_publish and status == DRAFT)
    for selection in (everything(state.schema, type_), ALL_FIELDS):
        with Budget(settings) as budget:
            view = View(state.snapshot, settings, drafts, None, budget)
            try:
                return orjson.Fragment(Renderer(view).document(document, selection))
            except LimitError:
                continue
    return ids


def everything(schema: Schema, type_: Type, enclosing: tuple[str, ...] = ()) -> Selection:
    """Return a selection that populates everything except relations to users.

    `enclosing` contains the uids of the enclosing components, which are not populated again.
    """
    nodes = []
    for name in type_.populatable:
        attribute = type_.attributes.get(name)
        if attribute is None:
            nodes.append(Node(name, None, -1, {type_.uid: ALL_FIELDS}))
            continue
        targets = [target for target in targets_of(schema, attribute) if target.uid not in ACCOUNT_UIDS]
        inner = (*enclosing, type_.uid)
        shown = {
            t.uid: everything(schema, t, inner)
            if t.kind == "component" and t.uid not in inner
            else ALL_FIELDS
            for t in targets
        }
        if shown:
            nodes.append(Node(name, attribute, type_.position[name], shown))
    return Selection(populate=tuple(nodes))


# --- delivery -------------------------------------------------------------------------------------


def make_deliverer(site: Site, timing: Timing) -> Deliverer:
    """Create the job that sends events to webhooks."""

    def render(event: Event, drafts: bool) -> bytes:
        if event.document_id:
            # This waits for the write lock, so the state includes the reported change.
            site.record()
        return body_of(site.state, event, drafts=drafts)

    return Deliverer(site.root, lambda: site.state.settings, render, timing)
