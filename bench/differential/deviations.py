"""What Quire answers differently on purpose: tests/conformance/deviations.json, applied to answers.

An entry says what both do and why. What it has in `match` says where a run meets it: patterns for the
request (as it reads, then its body as JSON, with the names of attributes and with their kinds), for where
the difference is (with kinds for names), and for what is there and here. `instead` replaces patterns of
the request: the deviation explains an answer where Quire, asked that instead, says the same as the other.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.differential.compare import Difference
from bench.differential.request import Request
from bench.differential.shapes import Shapes

FILE = Path(__file__).parents[2] / "tests" / "conformance" / "deviations.json"
Check = Callable[[Request], bool]  # whether Quire, asked this instead, answers the same


@dataclass(frozen=True, slots=True)
class Deviation:
    """One entry."""

    name: str
    match: Mapping[str, Any]
    lasting: bool = False  # whether documents hold something else afterwards

    def instead(self, request: Request) -> Request | None:
        """What Quire is to be asked instead, where that is how the deviation shows."""
        made = request
        for pattern, text in self.match.get("instead", ()):
            query = tuple((re.sub(pattern, text, key), value) for key, value in made.query)
            made = replace(made, query=query)
        return made if made != request else None

    def explains(self, request: str, found: Difference, where: str) -> bool:
        """Whether it is why there is this difference."""
        if not self.match or "instead" in self.match:
            return False
        told = {
            "request": request,
            "where": where,
            "kind": found.kind,
            "there": found.theirs,
            "here": found.ours,
        }
        return all(re.search(pattern, str(told[key])) for key, pattern in self.match.items())


def read_deviations(path: Path = FILE) -> list[Deviation]:
    """All entries that a run can meet."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [
        Deviation(entry["name"], match, entry.get("lasting", False))
        for entry in entries
        for match in _matches(entry)
    ]


def _matches(entry: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = entry.get("match", [])
    return [found] if isinstance(found, Mapping) else found


def explain(
    deviations: Sequence[Deviation],
    requests: Sequence[Request],
    found: Sequence[Difference],
    shapes: Shapes,
    same: Check,
) -> tuple[list[str], list[Difference]]:
    """The names of the deviations that explain differences, and the differences that none explains.

    The last of the requests is the one that was answered; one before it is the write that it looks at.
    """
    text = " then ".join(_text(request, shapes) for request in requests)
    names, left = set(), []
    for difference in found:
        where = shapes.where(difference, requests[-1])
        name = next((d.name for d in deviations if d.explains(text, difference, where)), None)
        if name is None:
            left.append(difference)
        else:
            names.add(name)
    for deviation in deviations:
        other = deviation.instead(requests[-1]) if left else None
        if other is not None and same(other):
            return sorted({*names, deviation.name}), []
    return sorted(names), left


def _text(request: Request, shapes: Shapes) -> str:
    """A request as patterns see it, with who asks."""
    text = f"{request.method} {request.path}?{'&'.join('='.join(pair) for pair in request.query)}"
    text += "".join(f" {name}: {value}" for name, value in request.headers) + f" by {request.who}"
    text += shapes.through(request)
    if request.body is None:
        return text
    body = json.dumps(request.body, ensure_ascii=False)
    return f"{text} {body} {shapes.names(body)}"
