"""Expected documents of a soak, computed from the responses to its writes."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Values = Mapping[str, Any]
GONE: Values = {}


@dataclass(slots=True)
class Expected:
    """The possible states of one document: one after an acknowledged write, several after an unknown one."""

    states: list[Values]
    acknowledged: int = 0  # updates with a response
    unknown: int = 0  # updates without a response
    since: float = 0.0  # time of the last response

    def allows(self, found: Values | None) -> bool:
        """Whether a document may be in the observed state; None if it did not exist."""
        return any(_agrees(state, found) for state in self.states)


def _agrees(state: Values, found: Values | None) -> bool:
    if not state or found is None:
        return not state and found is None
    return all(found.get(name) == value for name, value in state.items())


@dataclass(slots=True)
class Model:
    """All documents by collection (with the version: `pages?status=draft`) and id; each has one writer."""

    documents: dict[tuple[str, str], Expected] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def acknowledge(self, kind: str, document: str, state: Values, at: float) -> None:
        """Note a document's state from a response."""
        with self.lock:
            known = self.documents.setdefault((kind, document), Expected([]))
            known.acknowledged += bool(known.states) and bool(state)
            known.states, known.since = [state], at

    def doubt(self, kind: str, document: str, change: Values | None) -> None:
        """Note a write that may have been made: changed attributes, or None for a deletion."""
        with self.lock:
            if known := self.documents.get((kind, document)):
                known.unknown += 1
                known.states += [_changed(state, change) for state in known.states]

    def settle(self, kind: str, document: str, found: Values | None) -> None:
        """Note the observed state of a document after an unknown write."""
        with self.lock:
            self.documents[kind, document].states = [found if found is not None else GONE]

    def of(self, kind: str) -> dict[str, Expected]:
        """Return the documents of a collection, by id."""
        with self.lock:
            return {document: known for (each, document), known in self.documents.items() if each == kind}


def _changed(state: Values, change: Values | None) -> Values:
    """Return a state after a change, without timestamps, which responses lack."""
    if change is None:
        return GONE
    kept = {name: value for name, value in state.items() if name not in ("updatedAt", "publishedAt")}
    return {**kept, **change} if state else change
