"""What Bifolio answers differently on purpose: the rows of docs/differences.md, applied to responses.

Each entry of tests/conformance/deviations.json is one row of that page. Its masks in `match` say where a run
meets the row. Each mask names the `kind` of the difference, and has patterns for the request (as it reads,
then its body as JSON, with the names of attributes and with their kinds), for where the difference is (with
kinds for names), for what is there and here, and for all messages of an error (`refused there`,
`refused here`). `check` names a function of `checks` that looks closer.
`instead` replaces patterns of the request: the row explains a response if Bifolio, asked that instead,
answers the same as Strapi; `without` leaves keys of the query out, and the row has to explain the rest.
Entries without `match` say in `unmet` why no run meets them.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from bench.differential.checks import CHECKS, Context
from bench.differential.difference import Difference
from bench.differential.request import Answer, Request
from bench.differential.shapes import Shapes

FILE = Path(__file__).parents[2] / "tests" / "conformance" / "deviations.json"
_CLOSER = ("check", "without")  # what a mask has beside patterns


class Again(Protocol):
    """Asks Bifolio, or both, something else, and says what differs then."""

    def __call__(self, other: Request, *, both: bool) -> tuple[list[Difference], Context]:
        """The differences, and where they were found."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """One entry."""

    name: str
    match: Mapping[str, Any]
    lasting: bool = False  # whether documents hold something else afterwards

    def instead(self, request: Request) -> Request | None:
        """What Bifolio is to be asked instead, where that is how the deviation shows."""
        made = request
        for pattern, text in self.match.get("instead", ()):
            query = tuple((re.sub(pattern, text, key), value) for key, value in made.query)
            made = replace(made, query=query)
        return made if made != request else None

    def without(self, request: Request) -> Request | None:
        """What both are to be asked to see whether the row explains a difference: less of the query."""
        if "without" not in self.match or request.method != "GET":
            return None
        left = (pair for key, value in request.query for pair in _left(key, value, self.match["without"]))
        query = tuple(dict.fromkeys(left))  # several fields leave the same
        return replace(request, query=query) if query != request.query else None

    def explains(self, request: str, found: Difference, where: str, context: Context) -> bool:
        """Whether it is why there is this difference."""
        if not self.match or "instead" in self.match:
            return False
        patterns = {key: pattern for key, pattern in self.match.items() if key not in _CLOSER}
        told = {
            "request": request,
            "where": where,
            "kind": found.kind,
            "there": found.theirs,
            "here": found.ours,
            "refused there": _messages(context.theirs),
            "refused here": _messages(context.ours),
        }
        if not all(re.search(pattern, str(told[key]), re.DOTALL) for key, pattern in patterns.items()):
            return False
        return CHECKS[self.match["check"]](context, found) if "check" in self.match else True


def _messages(answer: Answer) -> str:
    """The message of an error, then those of its parts, one a line."""
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    if not isinstance(error, dict):
        return ""
    parts = (error.get("details") or {}).get("errors") or []
    return "\n".join([str(error.get("message")), *(str(part.get("message")) for part in parts)])


def _left(key: str, value: str, pattern: str) -> tuple[tuple[str, str], ...]:
    """What a pair of a query is without what a pattern finds: nothing, or that an attribute is populated."""
    found = re.search(pattern, key)
    if not found:
        return ((key, value),)
    return ((key[: found.start()], "true"),) if re.match(r"populate\[", key) else ()


def read_deviations(path: Path = FILE) -> list[Deviation]:
    """All entries that a run can meet."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [
        Deviation(entry["name"], match, entry.get("lasting", False))
        for entry in entries
        for match in _matches(entry)
    ]


def read_rows(path: Path = FILE) -> Mapping[str, str]:
    """The rows of docs/differences.md: the first column of each, by its name."""
    return {entry["name"]: entry["about"] for entry in json.loads(path.read_text(encoding="utf-8"))}


def _matches(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = entry.get("match", [])
    return [found] if isinstance(found, Mapping) else found


def explain(
    deviations: Sequence[Deviation], found: Sequence[Difference], context: Context, again: Again
) -> tuple[list[str], list[Difference]]:
    """The names of the deviations that explain differences, and the differences that none explains."""
    names, left = _told(deviations, found, context, again)
    for deviation in deviations:
        other = deviation.instead(context.requests[-1]) if left and context.write is None else None
        if other is not None and not _told(deviations, *again(other, both=False), None)[1]:
            return sorted({*names, deviation.name}), []
    return sorted(names), left


def _told(
    deviations: Sequence[Deviation], found: Sequence[Difference], context: Context, again: Again | None
) -> tuple[set[str], list[Difference]]:
    """Apply the masks; the last request of the context was answered, one before it is the write."""
    shapes, answered = context.shapes, context.requests[-1]
    text = " then ".join(_text(request, shapes) for request in context.requests)
    names, left = set(), []
    for difference in found:
        where = shapes.where(difference, answered)
        name = next(
            (
                deviation.name
                for deviation in deviations
                if deviation.explains(text, difference, where, context)
                and _shown_without(deviations, deviation, answered, again)
            ),
            None,
        )
        if name is None:
            left.append(difference)
        else:
            names.add(name)
    return names, left


def _shown_without(
    deviations: Sequence[Deviation], deviation: Deviation, answered: Request, again: Again | None
) -> bool:
    """Whether a mask needs no closer look, or the same request with less of its query shows the row alone."""
    if "without" not in deviation.match:
        return True
    other = deviation.without(answered) if again is not None else None
    if other is None or again is None:
        return False
    names, _ = _told(deviations, *again(other, both=True), None)
    return deviation.name in names


def _text(request: Request, shapes: Shapes) -> str:
    """A request as patterns see it, with who asks."""
    text = f"{request.method} {request.path}?{'&'.join('='.join(pair) for pair in request.query)}"
    text += "".join(f" {name}: {value}" for name, value in request.headers) + f" by {request.who}"
    text += shapes.through(request)
    if request.body is None:
        return text
    body = json.dumps(request.body, ensure_ascii=False)
    return f"{text} {body} {shapes.names(body)}"
