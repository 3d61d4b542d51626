"""Queries for the events that a request selects and its caller may see."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from server.auth.draft_visibility import has_draft_permission
from server.auth.permissions import Actor, may_find, permission_subject
from server.documents.document import DRAFT
from server.errors import ForbiddenError, ValidationError
from server.events.database import EventDatabase
from server.events.model import KINDS, PUBLIC_KINDS, Counts, Event
from server.events.resume import require_available
from server.schema.model import UPLOAD, Attribute, Schema, Type
from server.schema.spelling import suggestion

# --- visible --------------------------------------------------------------------------------------

# Events of these kinds are visible only if a visible attribute has changed.
_CHANGES = ("entry.update", "entry.publish")
HISTORY_FIELDS = ("actor", "commit")  # visible only with the permission `history.read`


def visible_part(event: Event, actor: Actor, schema: Schema) -> Event | None:
    """Return the part of an event that the actor may see, or None if the actor may see none of it."""
    if event.hidden and not actor.everything:
        return None
    if event.counts is not None:
        counts = _visible_counts(event.counts, actor, schema)
        return replace(event, counts=counts) if counts else None
    type_ = schema.types.get(event.uid)
    kind = _visible_kind(event.kind, type_, actor)
    if kind is None or not _may_see(actor, event.uid, event.status):
        return None
    event = event if kind == event.kind else replace(event, kind=kind)
    names = event.changed or ()
    links = dict(event.links)
    known = tuple(
        name
        for name in names
        if type_ is None or _may_see_attribute(actor, type_.attributes.get(name), links.get(name, ()))
    )
    if names and not known and event.kind in _CHANGES:
        return None
    return event if len(known) == len(names) else replace(event, changed=known)


def _may_see_attribute(actor: Actor, attribute: Attribute | None, links: Sequence[str]) -> bool:
    if links and not any(may_find(actor, uid) for uid in links):
        return False
    if attribute is None:
        return True
    if not attribute.visible:
        return actor.everything
    return attribute.type != "relation" or not attribute.target or may_find(actor, attribute.target)


def shown(event: Event, actor: Actor) -> dict[str, Any]:
    body = event.shown()
    if not actor.may("history", "read"):
        body.update(dict.fromkeys(HISTORY_FIELDS))
    return body


def _may_see(actor: Actor, uid: str, status: str) -> bool:
    if "::" not in uid:  # a component, which several content types may use
        return actor.everything or actor.reading
    return may_find(actor, uid) and (status != DRAFT or has_draft_permission(actor, uid))


def _visible_kind(kind: str, type_: Type | None, actor: Actor) -> str | None:
    # Callers without permission to read drafts see the same events whether or not a document has a draft.
    # They do not see `entry.update`, because it can mean that a draft has changed.
    if kind != "entry.update" and kind not in PUBLIC_KINDS:
        return kind
    if type_ is None or not type_.draft_publish or has_draft_permission(actor, type_.uid):
        return None if kind in PUBLIC_KINDS else kind
    return PUBLIC_KINDS.get(kind)


def _visible_counts(counts: Counts, actor: Actor, schema: Schema) -> Counts:
    visible_counts: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for uid, by_status in counts.items():
        type_ = schema.types.get(uid)
        seen = {
            status: _visible_kinds(kinds, type_, actor)
            for status, kinds in by_status.items()
            if _may_see(actor, uid, status)
        }
        if any(seen.values()):
            visible_counts[uid] = seen
    return visible_counts


def _visible_kinds(counts: Mapping[str, int], type_: Type | None, actor: Actor) -> dict[str, int]:
    seen: dict[str, int] = {}
    for kind, count in counts.items():
        if shown_kind := _visible_kind(kind, type_, actor):
            seen[shown_kind] = seen.get(shown_kind, 0) + count
    return dict(sorted(seen.items()))


# --- reading --------------------------------------------------------------------------------------

MAX_INTEGER = 2**53  # JavaScript represents integers exactly up to this one
DEFAULT_LIMIT, MAX_LIMIT = 100, 1000  # number of events in a response
STATUSES = ("published", "draft")
PARAMETERS = ("since", "newest", "types", "events", "locales", "status", "limit", "presence")
_EVENT_PATTERNS = (
    *KINDS,
    *dict.fromkeys(f"{kind.partition('.')[0]}.*" for kind in KINDS),
)  # values of the parameter `events`
_MAX_QUOTED_CHARS = 100  # in error messages
_BATCH_EVENTS = 500  # per database read
MAX_READ_EVENTS = 20_000  # examined for one response


@dataclass(frozen=True, slots=True)
class Selection:
    """Conditions that an event must meet to be selected.

    A condition whose set is empty is met by every event.
    """

    types: frozenset[str] = frozenset()
    events: frozenset[str] = frozenset()
    locales: frozenset[str] = frozenset()
    status: frozenset[str] = frozenset()
    presence: tuple[str, str] | None = None  # document (content type's name and id) whose presence to include

    def matches(self, event: Event) -> bool:
        """Return whether an event meets all conditions.

        An event without a locale matches every locale, and an event without a status matches every status.
        """
        if self.events and not self._has_kind(event.kind):
            return False
        if event.counts is not None:
            return not self.types or any(permission_subject(uid) in self.types for uid in event.counts)
        if self.types and permission_subject(event.uid) not in self.types:
            return False
        if self.locales and event.locale and event.locale not in self.locales:
            return False
        return not (self.status and event.status and event.status not in self.status)

    def _has_kind(self, kind: str) -> bool:
        return kind in self.events or f"{kind.partition('.')[0]}.*" in self.events


def findable_subjects(actor: Actor, schema: Schema) -> list[str]:
    """Return the names of the content types for which the actor has the `find` permission.

    Raises ForbiddenError if there are none.
    """
    types = (*schema.content_types, schema.types[UPLOAD])
    subjects = [permission_subject(type_.uid) for type_ in types if may_find(actor, type_.uid)]
    if not subjects:
        raise ForbiddenError()
    return subjects


def parse_selection(parameters: Mapping[str, Any], subjects: Sequence[str]) -> Selection:
    """Parse the parameters that select events. `subjects` contains the valid names of content types.

    Raises ValidationError if a parameter is unknown or has an invalid value.
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
    # A value such as `article:hello`. Raises ValidationError.
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


def read_number(parameters: Mapping[str, Any], name: str, default: int, maximum: int = MAX_INTEGER) -> int:
    """Parse a numeric parameter. Raises ValidationError if it is not a whole number from 0 to `maximum`."""
    text = parameters.get(name, "")
    if text == "":
        return default
    if not isinstance(text, str) or not text.isascii() or not text.isdigit() or int(text[:20]) > maximum:
        raise ValidationError(f'"{name}" must be a whole number from 0 to {maximum:,}')
    return int(text)


@dataclass(frozen=True, slots=True)
class EventPage:
    """The selected events in a range of the log.

    `last_number` is the number of the last event that was examined. `has_more` is set if the log contains
    events after that number.
    """

    events: list[Event]
    last_number: int
    has_more: bool


def read_page(
    database: EventDatabase,
    actor: Actor,
    schema: Schema,
    selection: Selection,
    since: int,
    limit: int,
    count_examined: Callable[[int], None],
) -> EventPage:
    """Return up to `limit` events after number `since` that are selected and visible to the actor.

    `count_examined` is called with the number of events in each batch read from the log. Raises GoneError if
    the events after `since` were deleted, or StorageError if the log can't be read.
    """
    bounds = database.bounds()
    require_available(bounds, since)
    found: list[Event] = []
    at, read = since, 0
    while read < MAX_READ_EVENTS:
        part = database.read(at, _BATCH_EVENTS, with_public=True)
        count_examined(len(part))
        for event in part:
            seen = visible_part(event, actor, schema)
            if seen is not None and not selection.matches(seen):
                seen = None
            if seen is not None and len(found) == limit:
                return EventPage(found, at, has_more=True)
            at = event.seq
            found.extend([seen] if seen else [])
        read += len(part)
        if len(part) < _BATCH_EVENTS:
            return EventPage(found, max(at, bounds.last), has_more=False)
    return EventPage(found, at, has_more=True)
