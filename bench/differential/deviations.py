"""Intentional differences from Strapi, which rows in docs/differences.md explain."""
# Each entry in tests/conformance/deviations.json is one row. Its `match` is a list of masks, each of which
# describes some of the differences that the row explains:
# - `kind`, `request`, `where`: patterns for the kind of the difference, the request, and the place in the
#   response (as attribute kinds).
# - `there`, `here`: patterns for the values of Strapi and Bifolio.
# - `refused there`, `refused here`: patterns for their error messages.
# - `check`: name of a function in `checks`.
# - `instead`: replacements in the query. Bifolio's response to the changed query must equal Strapi's.
# - `without`: keys to remove from the query. The row must also explain the response to the rest.
# An entry without `match` has the key `unmet`: the reason why no run reveals the difference.

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
_CLOSER = ("check", "without")  # the keys in a mask that are not patterns


class Retry(Protocol):
    """Function that sends a changed request to Bifolio or to both servers, and compares the responses."""

    def __call__(self, other: Request, *, both: bool) -> tuple[list[Difference], Context]:
        """Return the differences and their context."""


@dataclass(frozen=True, slots=True)
class Deviation:
    """An intentional difference: one mask in tests/conformance/deviations.json."""

    name: str
    match: Mapping[str, Any]
    is_permanent: bool = False  # whether stored documents differ afterwards

    def instead(self, request: Request) -> Request | None:
        """Return the changed request for Bifolio, or None if the mask does not apply."""
        made = request
        for pattern, text in self.match.get("instead", ()):
            query = tuple((re.sub(pattern, text, key), value) for key, value in made.query)
            made = replace(made, query=query)
        return made if made != request else None

    def without(self, request: Request) -> Request | None:
        """Return the request without some query keys, or None if the mask does not apply."""
        if "without" not in self.match or request.method != "GET":
            return None
        left = (pair for key, value in request.query for pair in _left(key, value, self.match["without"]))
        query = tuple(dict.fromkeys(left))  # Remove duplicates, which can result from removing keys.
        return replace(request, query=query) if query != request.query else None

    def explains(self, request: str, found: Difference, where: str, context: Context) -> bool:
        """Return whether the mask explains a difference."""
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
    error = answer.body.get("error") if isinstance(answer.body, dict) else None
    if not isinstance(error, dict):
        return ""
    parts = (error.get("details") or {}).get("errors") or []
    return "\n".join([str(error.get("message")), *(str(part.get("message")) for part in parts)])


def _left(key: str, value: str, pattern: str) -> tuple[tuple[str, str], ...]:
    found = re.search(pattern, key)
    if not found:
        return ((key, value),)
    return ((key[: found.start()], "true"),) if re.match(r"populate\[", key) else ()


def read_deviations(path: Path = FILE) -> list[Deviation]:
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [
        Deviation(entry["name"], match, entry.get("lasting", False))
        for entry in entries
        for match in _matches(entry)
    ]


def read_rows(path: Path = FILE) -> Mapping[str, str]:
    """Return the texts in the first column of docs/differences.md, by the names of the rows."""
    return {entry["name"]: entry["about"] for entry in json.loads(path.read_text(encoding="utf-8"))}


def _matches(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = entry.get("match", [])
    return [found] if isinstance(found, Mapping) else found


def explain(
    deviations: Sequence[Deviation], found: Sequence[Difference], context: Context, retry: Retry
) -> tuple[list[str], list[Difference]]:
    """Return the names of the rows that explain differences, and the unexplained differences."""
    names, left = _apply_masks(deviations, found, context, retry)
    for deviation in deviations:
        other = deviation.instead(context.requests[-1]) if left and context.write is None else None
        if other is not None and not _apply_masks(deviations, *retry(other, both=False), None)[1]:
            return sorted({*names, deviation.name}), []
    return sorted(names), left


def _apply_masks(
    deviations: Sequence[Deviation], found: Sequence[Difference], context: Context, retry: Retry | None
) -> tuple[set[str], list[Difference]]:
    """Apply the masks to the differences in the last response. The result is the same as for `explain`."""
    # If there is a request before the last one, it is the write whose effect is checked.
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
                and _explains_without(deviations, deviation, answered, retry)
            ),
            None,
        )
        if name is None:
            left.append(difference)
        else:
            names.add(name)
    return names, left


def _explains_without(
    deviations: Sequence[Deviation], deviation: Deviation, answered: Request, retry: Retry | None
) -> bool:
    """Return whether a mask explains the response to the request without the mask's query keys."""
    if "without" not in deviation.match:
        return True
    other = deviation.without(answered) if retry is not None else None
    if other is None or retry is None:
        return False
    names, _ = _apply_masks(deviations, *retry(other, both=True), None)
    return deviation.name in names


def _text(request: Request, shapes: Shapes) -> str:
    # The text also includes the actor.
    text = f"{request.method} {request.path}?{'&'.join('='.join(pair) for pair in request.query)}"
    text += "".join(f" {name}: {value}" for name, value in request.headers) + f" by {request.who}"
    text += shapes.through(request)
    if request.body is None:
        return text
    body = json.dumps(request.body, ensure_ascii=False)
    return f"{text} {body} {shapes.names(body)}"
