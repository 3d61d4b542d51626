"""What a run says: agreement by area, known deviations, and each cause with a request that shows it."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bench.differential.causes import Cause, Findings
from bench.tables import show

_LONG = 700
ENOUGH = 30  # answers of an area, to say that it agrees too little


def print_agreement(findings: Findings, floors: Mapping[str, float]) -> None:
    """The table of areas."""
    rows = []
    for area in findings.areas():
        share = f"{findings.agreement(area):.2%}"
        rows.append(
            [area, str(findings.asked(area)), share, f"{floors.get(area, 0):.1%}", str(findings.known[area])]
        )
    all_same, all_other = findings.same.total(), sum(c.count for c in findings.causes.values())
    share = f"{all_same / max(all_same + all_other, 1):.2%}"
    rows.append(["all", str(all_same + all_other), share, "", str(findings.known.total())])
    note = "Answers that agree, of those that no known deviation explains; the least that is asked of each."
    show("Agreement", ["area", "answers", "agree", "at least", "known deviations"], rows, note)


def print_deviations(findings: Findings) -> None:
    """How often each known deviation was met."""
    for name, count in findings.deviations.most_common():
        print(f"  {count:5}  {name}")


def ranked(findings: Findings) -> list[Cause]:
    """The causes, most frequent first."""
    return sorted(findings.causes.values(), key=lambda cause: (-cause.count, cause.shape))


def cause_text(cause: Cause, number: int) -> str:
    """One cause as Markdown."""
    example = cause.example
    areas = ", ".join(f"{area} {count}" for area, count in cause.areas.most_common())
    lines = [
        f"## {number}. {cause.count} ×: {cause.shape}",
        "",
        f"areas: {areas}; case `{example.case}`",
        "",
        "```sh",
    ]
    lines += [*example.commands, "```", ""]
    lines += [f"- {difference}" for difference in example.verdict.left[:6]]
    lines += ["", f"Strapi: {example.verdict.theirs.status} `{_shortened(example.verdict.theirs.body)}`", ""]
    lines += [f"Quire: {example.verdict.ours.status} `{_shortened(example.verdict.ours.body)}`", ""]
    return "\n".join(lines)


def _shortened(body: Any) -> str:
    """JSON of at most so many characters, without what is the same everywhere."""
    text = body if isinstance(body, str) else json.dumps(_without(body), ensure_ascii=False)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _without(body: Any) -> Any:
    if isinstance(body, dict):
        return {k: _without(v) for k, v in body.items() if k not in ("createdAt", "updatedAt", "id")}
    return [_without(item) for item in body] if isinstance(body, list) else body


def below(findings: Findings, floors: Mapping[str, float]) -> Sequence[str]:
    """The areas that agree less than they are to; of few answers nothing can be told."""
    asked = (area for area in findings.areas() if findings.asked(area) >= ENOUGH)
    return [area for area in asked if findings.agreement(area) < floors.get(area, 0)]
