"""One difference between two responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ABSENT = "«absent»"
WORDING = "message"  # the kind of what is said in other words, and means the same


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs: where, and how.

    `kind` is status, header, error, details, more (errors than there), message (the wording of an error),
    value, type, missing, extra, order, or members (also more or fewer members than there), or itself, where
    only here a document relates to itself, or repeated, where a list has a document several times there, or
    other locale, where a relation shows another version of the same document, or other document, where a
    relation to one does, or written and moved, where a relation lacks only the document that was written
    before, or has it in another place.
    """

    where: str
    kind: str
    theirs: Any
    ours: Any
    holder: Mapping[str, Any] = field(default_factory=dict, compare=False)  # our innermost document around it

    def key(self) -> tuple[str, ...]:
        """Return what tells it from others, also after documents got other numbers of rows."""
        holder = self.holder.get("documentId"), self.holder.get("locale")
        values = (_without_number(value) for value in (self.theirs, self.ours))
        return (self.where, *map(repr, (*holder, *values)))

    def __str__(self) -> str:
        return f"{self.where} {self.kind}: {_short(self.theirs)} there, {_short(self.ours)} here"


def _without_number(value: Any) -> Any:
    return {k: v for k, v in value.items() if k != "id"} if isinstance(value, dict) else value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 100 else text[:97] + "…"
