"""One difference between two responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ABSENT = "«absent»"
WORDING = "message"  # the kind for a different wording with the same meaning


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: where it is, its kind, and both values. “There” means in Strapi's response, and “here”
    means in Bifolio's.

    Kinds:
    - status, header, error, details; message: the wording of an error; more: additional errors here
    - value, type, missing, extra, order
    - members: the lists contain different documents
    - itself: only here, a document is related to itself
    - repeated: there, a list contains a document several times
    - other locale, other document: a relation shows a different locale or a different document
    - written, moved: a relation differs only in the document that was just written, which is missing there or
      at a different position
    """

    where: str
    kind: str
    theirs: Any
    ours: Any
    holder: Mapping[str, Any] = field(
        default_factory=dict, compare=False
    )  # the innermost of Bifolio's documents that contains the difference

    def key(self) -> tuple[str, ...]:
        """Return a key that identifies the difference. The key does not depend on row numbers, which may
        change.
        """
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
