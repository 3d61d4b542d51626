"""One step of a conversation: a request, what to learn from its answer, and what shows what it changed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from bench.differential.request import Request


def _nothing() -> None:
    """What a step does for the next ones, unless it says otherwise."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a conversation.

    `captures` are names of references with the place of their values in the answer, as `data.documentId`;
    `learns` are further requests to ask for such values afterwards. `looks` show what the documents hold.
    `done` is called when both servers took it, so that whoever makes the next step knows.
    """

    area: str
    request: Request
    captures: Mapping[str, str] = field(default_factory=dict)
    learns: tuple[tuple[Request, str, str], ...] = ()
    looks: tuple[Request, ...] = ()
    done: Callable[[], None] = _nothing


class Maker(Protocol):
    """Makes the steps of one conversation."""

    def step(self, areas: Mapping[str, int]) -> Step | None:
        """A step of one of the areas, or None where there is nothing to do in it."""
