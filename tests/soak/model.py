"""The documents that a soak test expects, computed from the responses to its writes."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]
GONE: Values = {}


@dataclass(slots=True)
class Expected:
    """The possible states of a document: one after a confirmed write, several if the result of a write is
    unknown.
    """

    states: list[Values]
    acknowledged: int = 0  # updates with a response
    unknown: int = 0  # updates without a response
    since: float = 0.0  # the time of the last response
    created_at: float = 0.0  # the time of the first response

    def allows(self, found: Values | None) -> bool:
        """Whether the document may be in the given state. None means that the document does not exist."""
        return any(_agrees(state, found) for state in self.states)


def _agrees(state: Values, found: Values | None) -> bool:
    if not state or found is None:
        return not state and found is None
    return all(found.get(name) == value for name, value in state.items())


@dataclass(slots=True)
class Model:
    """All expected documents, by collection and id. Each document has only one writer.

    Drafts are a separate collection, such as `pages?status=draft`.
    """

    documents: dict[tuple[str, str], Expected] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledge(self, kind: str, document: str, state: Values, at: float) -> None:
        """Record the state of a document from the response to a write."""
        with self.lock:
            known = self.documents.setdefault((kind, document), Expected([], created_at=at))
            known.acknowledged += bool(known.states) and bool(state)
            known.states, known.since = [state], at

    def doubt(self, kind: str, document: str, change: Values | None) -> None:
        """Record a write that may have been applied. `change` contains the changed attributes, or is None for
        a deletion.
        """
        with self.lock:
            if known := self.documents.get((kind, document)):
                known.unknown += 1
                known.states += [_changed(state, change) for state in known.states]

    def settle(self, kind: str, document: str, found: Values | None) -> None:
        """Record the state in which a document was found after a write with unknown result."""
        with self.lock:
            self.documents[kind, document].states = [found if found is not None else GONE]

    def of(self, kind: str) -> dict[str, Expected]:
        """Return the documents of a collection, by id."""
        with self.lock:
            return {document: known for (each, document), known in self.documents.items() if each == kind}


def _changed(state: Values, change: Values | None) -> Values:
    """Return a state after a change. Remove the timestamps, because responses do not contain them."""
    if change is None:
        return GONE
    kept = {name: value for name, value in state.items() if name not in ("updatedAt", "publishedAt")}
    return {**kept, **change} if state else change
