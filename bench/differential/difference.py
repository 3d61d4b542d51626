"""One difference between two responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

ABSENT = "«absent»"
WORDING = "message"  # a different wording with the same meaning


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: its place, its kind, and the values of Strapi (“there”) and Bifolio (“here”).

    Some of the kinds:

    - `more`: Bifolio returns additional errors.
    - `members`: The lists contain different documents.
    - `itself`: Only Bifolio relates a document to itself.
    - `repeated`: Strapi's list contains a document more than once.
    - `other locale`, `other document`: A relation shows a different locale or document.
    - `written`: Only the document just written is missing in Strapi's response.
    - `moved`: Only the document just written has a different position.
    """

    where: str
    kind: str
    theirs: Any
    ours: Any
    holder: Mapping[str, Any] = field(
        default_factory=dict, compare=False
    )  # the innermost of Bifolio's documents that contains the difference

    def key(self) -> tuple[str, ...]:
        # Row numbers are excluded, because they may change.
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
