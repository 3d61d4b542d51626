"""Reading events from the event log for a caller. Only events that are selected by the request and visible to
the caller are returned.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from server.auth.draft_visibility import has_draft_permission
from server.auth.permissions import Actor, may_find, subject_of
from server.documents.document import DRAFT
from server.errors import ForbiddenError, ValidationError
from server.events.database import EventDatabase
from server.events.model import KINDS, Counts, Event
from server.events.resume import require_kept
from server.schema.model import UPLOAD, Attribute, Schema, Type
from server.schema.spelling import suggestion

# --- visible --------------------------------------------------------------------------------------

# Events of these kinds are visible only if a visible attribute has changed.
_CHANGES = ("entry.update", "entry.publish")
HISTORY_FIELDS = ("actor", "commit")  # visible only with the permission `history.read`


def visible(event: Event, actor: Actor, schema: Schema) -> Event | None:
    """Return an event in the form that an actor may see, or None if the event is not visible to the actor.

    - A deletion is visible if the actor could see the document before.
    - Hidden events are visible only to actors with full access.
    - An attribute is removed from `changed` if the current schema hides the attribute, or if it is or was a
      relation to a content type for which the actor lacks the `find` permission. If no attribute remains in
      an update or publish event, the event is not visible.
    """
    if event.hidden and not actor.everything:
        return None
    if event.counts is not None:
        counts = _visible_counts(event.counts, actor, schema)
        return replace(event, counts=counts) if counts else None
    type_ = schema.types.get(event.uid)
    if not _may_see(actor, event.uid, event.status) or _depends_on_draft(event.kind, type_, actor):
        return None
    names = event.changed or ()
    links = dict(event.links)
    known = tuple(
        name
        for name in names
        if type_ is None or _may_know(actor, type_.attributes.get(name), links.get(name, ()))
    )
    if names and not known and event.kind in _CHANGES:
        return None
    return event if len(known) == len(names) else replace(event, changed=known)


def _may_know(actor: Actor, attribute: Attribute | None, links: Sequence[str]) -> bool:
    """Return whether an actor may see that an attribute has changed. `links` has the same meaning as in
    `Event`.
    """
    if links and not any(may_find(actor, uid) for uid in links):
        return False
    if attribute is None:
        return True
    if not attribute.visible:
        return actor.everything
    return attribute.type != "relation" or not attribute.target or may_find(actor, attribute.target)


def shown(event: Event, actor: Actor) -> dict[str, Any]:
    """Return an event as JSON. The event must be visible to the actor."""
    body = event.shown()
    if not actor.may("history", "read"):
        body.update(dict.fromkeys(HISTORY_FIELDS))
    return body


def _may_see(actor: Actor, uid: str, status: str) -> bool:
    if "::" not in uid:  # a component, which several content types may use
        return actor.everything or actor.reading
    return may_find(actor, uid) and (status != DRAFT or has_draft_permission(actor, uid))


def _depends_on_draft(kind: str, type_: Type | None, actor: Actor) -> bool:
    """Whether an event reveals something about a draft that the actor may not read.

    A change to a published version has the event `entry.publish`. The event `entry.update` is added only if
    the draft, if there is one, has changed too.
    """
    if kind != "entry.update" or type_ is None or not type_.draft_publish:
        return False
    return not has_draft_permission(actor, type_.uid)


def _visible_counts(counts: Counts, actor: Actor, schema: Schema) -> Counts:
    visible_counts: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for uid, by_status in counts.items():
        type_ = schema.types.get(uid)
        seen = {
            status: {kind: n for kind, n in kinds.items() if not _depends_on_draft(kind, type_, actor)}
            for status, kinds in by_status.items()
            if _may_see(actor, uid, status)
        }
        if any(seen.values()):
            visible_counts[uid] = seen
    return visible_counts


# --- reading --------------------------------------------------------------------------------------

MAX_INTEGER = 2**53  # JavaScript numbers are exact up to this number.
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000  # number of events in a response: default, maximum
STATUSES = ("published", "draft")
PARAMETERS = ("since", "types", "events", "locales", "status", "limit", "presence")
_EVENT_PATTERNS = (
    *KINDS,
    *dict.fromkeys(f"{kind.partition('.')[0]}.*" for kind in KINDS),
)  # valid values of the parameter `events`
_MAX_QUOTED_CHARS = 100  # Longer words are truncated in error messages.
_BATCH_EVENTS = 500  # number of events per database read
MAX_READ_EVENTS = 20_000  # maximum number of events examined for one response


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that select events. If a set is empty, it does not restrict the events."""

    types: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    locales: frozenset[str] = frozenset()
    status: frozenset[str] = frozenset()
    presence: tuple[str, str] | None = (
        None  # the document (content type's name and id) whose presence to include
    )

    def has(self, event: Event) -> bool:
        """Return whether an event is selected. An event without a locale matches every locale, and an event
        without a status matches every status.

        The event site.update is selected if its counts include events for a selected content type.
        """
        if self.events and not self._has_kind(event.kind):
            return False
        if event.counts is not None:
            return not self.types or any(subject_of(uid) in self.types for uid in event.counts)
        if self.types and subject_of(event.uid) not in self.types:
            return False
        if self.locales and event.locale and event.locale not in self.locales:
            return False
        return not (self.status and event.status and event.status not in self.status)

    def _has_kind(self, kind: str) -> bool:
        return kind in self.events or f"{kind.partition('.')[0]}.*" in self.events


def subjects_of(actor: Actor, schema: Schema) -> list[str]:
    """Return the names of the content types for which an actor has the `find` permission. Raises
    ForbiddenError if the actor has it for none of them.
    """
    types = (*schema.content_types, schema.types[UPLOAD])
    subjects = [subject_of(type_.uid) for type_ in types if may_find(actor, type_.uid)]
    if not subjects:
        raise ForbiddenError()
    return subjects


def read_selection(parameters: Mapping[str, Any], subjects: Sequence[str]) -> Selection:
    """Parse the request parameters that select events. Raises ValidationError. `subjects` contains the valid
    content type names.
    """
    for name in parameters:
        if name not in PARAMETERS:
            raise _unknown_error(f'Unknown parameter "{name[:_MAX_QUOTED_CHARS]}"', name, PARAMETERS)
    return Selection(
        _parse_words(parameters, "types", subjects),
        _parse_words(parameters, "events", _EVENT_PATTERNS),
        _parse_words(parameters, "locales", None),
        _parse_words(parameters, "status", STATUSES),
        _document(parameters),
    )


def _document(parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Parse the parameter `presence`, such as `article:hello`, into a content type's name and a document id.
    Raises ValidationError.
    """
    value = parameters.get("presence", "")
    type_, _, document_id = value.partition(":") if isinstance(value, str) else ("", "", "")
    if value and not (type_ and document_id):
        raise ValidationError('"presence" must be a content type and a document id, such as "article:launch"')
    return (type_, document_id) if value else None


def _parse_words(parameters: Mapping[str, Any], name: str, known: Any) -> frozenset[str]:
    value = parameters.get(name, "")
    texts = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in texts):
        raise ValidationError(f'"{name}" must be a comma-separated list of values')
    words = frozenset(word.strip() for text in texts for word in text.split(",") if word.strip())
    for word in sorted(words):
        if known is not None and word not in known:
            raise _unknown_error(
                f'"{name}" contains the unknown value "{word[:_MAX_QUOTED_CHARS]}"', word, known
            )
    return words


def _unknown_error(message: str, word: str, known: Iterable[str]) -> ValidationError:
    hint = suggestion(word[:_MAX_QUOTED_CHARS], known)
    return ValidationError(f"{message}: {hint}" if hint else message)


def read_number(parameters: Mapping[str, Any], name: str, default: int, most: int = MAX_INTEGER) -> int:
    """Parse a parameter that must be a whole number from 0 to `most`. Raises ValidationError."""
    text = parameters.get(name, "")
    if text == "":
        return default
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or int(text[:20]) > most:
        raise ValidationError(f'"{name}" must be a whole number from 0 to {most:,}')
    return int(text)


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the event log: its events, the number of the last event that was examined, and whether more
    events follow.
    """

    events: list[Event]
    last: int
    more: bool


def read_part(
    database: EventDatabase,
    actor: Actor,
    schema: Schema,
    selection: Selection,
    since: int,
    limit: int,
    spend: Callable[[int], None],
) -> Part:
    """Return up to `limit` events after event number `since` that are selected and visible to the actor.

    `spend` is called with the number of events that were examined, and may raise an error. Raises GoneError
    and StorageError.
    """
    bounds = database.bounds()
    require_kept(bounds, since)
    found: list[Event] = []
    at, read = since, 0
    while read < MAX_READ_EVENTS:
        part = database.read(at, _BATCH_EVENTS)
        spend(len(part))
        for event in part:
            seen = visible(event, actor, schema) if selection.has(event) else None
            if seen is not None and len(found) == limit:
                return Part(found, at, more=True)
            at = event.seq
            found.extend([seen] if seen else [])
        read += len(part)
        if len(part) < _BATCH_EVENTS:
            return Part(found, max(at, bounds.last), more=False)
    return Part(found, at, more=True)
