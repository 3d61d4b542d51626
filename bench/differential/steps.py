"""One step in a conversation: a request, together with the requests that read its effects."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bench.differential.request import Request


def _nothing() -> None:
    """Do nothing after a step."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request in a conversation.

    - `captures`: maps references to places in the response, such as `data.documentId`.
    - `learns`: requests that are sent afterwards, to set more references.
    - `looks`: requests that read the stored documents.
    - `done`: called if both servers have accepted the request.
    """

    area: str
    request: Request
    captures: Mapping[str, str] = field(default_factory=dict)
    learns: tuple[tuple[Request, str, str], ...] = ()
    looks: tuple[Request, ...] = ()
    done: Callable[[], None] = _nothing


class Maker(Protocol):
    """Generator of the steps in one conversation."""

    def step(self, areas: Mapping[str, int]) -> Step | None:
        """Return a step in one of the areas, or None if none is possible."""
