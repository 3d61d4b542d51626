"""Recent activity: the caller's drafts, and changes by other people (docs/events.md)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from server.auth.draft_visibility import may_read_drafts
from server.auth.permissions import Actor
from server.documents.document import DRAFT, PUBLISHED, Document
from server.events.database import EventDatabase
from server.events.model import Event, Key
from server.events.presence import PUBLIC_ACTOR
from server.events.reading import visible_part
from server.index.publication_filter import publication_status
from server.schema.model import title_of
from server.service.read import Caller
from server.service.search import api_path
from server.site.site import State

MAX_EVENTS = 1000  # read for one response
MAX_LISTED = 20  # documents in each list
_DELETED = "entry.delete"

NameOf = Callable[[str], str | None]  # the name of an event's actor, such as "user:3"


@dataclass(frozen=True, slots=True)
class Activity:
    """Drafts that the caller was the last to change, and changes by other people, newest first.

    `drafts` and `others` have at most MAX_LISTED entries each; `other_count` counts all changes by other
    people. `log` is the id of the event log, and `last` is the number of its last event.
    """

    drafts: list[dict[str, Any]]
    others: list[dict[str, Any]]
    other_count: int
    log: str
    last: int


def find_activity(database: EventDatabase, caller: Caller, since: int | None, name_of: NameOf) -> Activity:
    """Find the drafts that the caller was the last to change.

    If `since` is given, also find changes by other people after the event with this number. Only the last
    MAX_EVENTS events are read. Raises StorageError.
    """
    bounds = database.bounds()
    start = max(bounds.first - 1, bounds.last - MAX_EVENTS)
    events = database.read(start, MAX_EVENTS, with_public=True)
    caller.budget.spend(len(events))
    latest = _last_events(events, caller)
    new: list[Event] = []
    if since is not None:
        new = [one for one in latest.values() if one.seq > since and one.actor != caller.actor.name]
    others = [_entry(event, caller, PUBLISHED, name_of) for event in new[:MAX_LISTED]]
    drafts = (_draft(event, caller, name_of) for event in _own(latest.values(), caller.actor))
    found = [draft for draft in drafts if draft]
    return Activity(found[:MAX_LISTED], others, len(new), bounds.id, bounds.last)


def _last_events(events: Iterable[Event], caller: Caller) -> Mapping[Key, Event]:
    latest: dict[Key, Event] = {}
    for event in events:
        seen = visible_part(event, caller.actor, caller.state.schema)
        if seen and seen.document_id and not seen.is_media:
            key = Key(seen.uid, seen.document_id, seen.locale)
            latest.pop(key, None)
            latest[key] = seen
    return dict(reversed(latest.items()))


def _own(events: Iterable[Event], actor: Actor) -> list[Event]:
    is_public = actor.name == PUBLIC_ACTOR
    return [] if is_public else [event for event in events if event.actor == actor.name]


def _draft(event: Event, caller: Caller, name_of: NameOf) -> dict[str, Any] | None:
    type_ = caller.state.schema.types.get(event.uid)
    if type_ is None or not may_read_drafts(caller.actor, type_):
        return None
    draft = caller.state.snapshot.get(type_, event.document_id, event.locale, DRAFT)
    # If there is no separate draft, the published version also counts as the draft.
    if draft is None or publication_status(caller.state.snapshot, draft) == PUBLISHED:
        return None
    return _entry(event, caller, DRAFT, name_of)


def _entry(event: Event, caller: Caller, status: str, name_of: NameOf) -> dict[str, Any]:
    state, sees_actor = caller.state, caller.actor.may("history", "read")
    document = _titled_version(event, state, caller.actor, status)
    title = title_of(document.type) if document else None
    return {
        "documentId": event.document_id,
        "type": event.model,
        "locale": event.locale,
        "event": event.kind,
        "at": event.at,
        "title": document.get(title) if document and title else None,
        "by": name_of(event.actor) if sees_actor and event.actor else None,
        "href": api_path(document, document.type, state.settings) if document else None,
    }


def _titled_version(event: Event, state: State, actor: Actor, status: str) -> Document | None:
    type_ = state.schema.types.get(event.uid)
    if type_ is None or event.kind == _DELETED:
        return None
    published = state.snapshot.get(type_, event.document_id, event.locale, PUBLISHED)
    if (status == DRAFT or published is None) and may_read_drafts(actor, type_):
        draft = state.snapshot.get(type_, event.document_id, event.locale, DRAFT)
        return draft or published
    return published
