"""Which events somebody may see, and what is said of them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from server.auth.permissions import Actor, subject_of
from server.documents.document import DRAFT
from server.events.model import Counts, Event

SIGNED = ("actor", "commit")  # what only those are told who may read the history


def visible(event: Event, actor: Actor) -> Event | None:
    """An event as an actor may see it; None where it may not.

    What is deleted is seen by who could see it before. Where nothing else changed than what nobody is shown,
    nobody sees the event, but who may do everything.
    """
    if event.hidden and not actor.everything:
        return None
    if event.counts is not None:
        counts = _visible_counts(event.counts, actor)
        return replace(event, counts=counts) if counts else None
    return event if _may_see(actor, event.uid, event.status) else None


def shown(event: Event, actor: Actor) -> dict[str, Any]:
    """What JSON says of a visible event."""
    said = event.shown()
    if not actor.may("history", "read"):
        said.update(dict.fromkeys(SIGNED))
    return said


def _may_see(actor: Actor, uid: str, status: str) -> bool:
    if "::" not in uid:  # a component, which many types may have
        return actor.everything or actor.reading
    subject = subject_of(uid)
    return actor.may(subject, "find") and (status != DRAFT or actor.may(subject, "readDraft"))


def _visible_counts(counts: Counts, actor: Actor) -> Counts:
    found: dict[str, Mapping[str, Mapping[str, int]]] = {}
    for uid, by_status in counts.items():
        seen = {status: kinds for status, kinds in by_status.items() if _may_see(actor, uid, status)}
        if seen:
            found[uid] = seen
    return found
