"""Report of a run: outcomes, declared differences, and causes with examples."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from bench.differential.causes import Cause, Causes, Findings
from bench.differential.judging import EQUAL, OUTCOMES
from bench.tables import show

_LONG = 700
ENOUGH = 30  # An area with fewer responses can't fail.
_HEAD = ["area", "compared", "equal", "but for wording", "declared", "undeclared", "share", "at least"]


def print_outcomes(findings: Findings, floors: Mapping[str, float]) -> None:
    rows = [_row(area, findings.outcomes[area], floors.get(area)) for area in findings.areas()]
    rows.append(_row("all", sum(findings.outcomes.values(), Counter()), floors.get("all")))
    note = "`share` is the percentage of compared responses that are equal. The test fails below `at least`."
    if findings.unrecorded:
        note += f" {findings.unrecorded} more requests were not recorded."
    show("Outcomes", _HEAD, rows, note)


def _row(area: str, outcomes: Counter[str], floor: float | None) -> list[str]:
    compared = outcomes.total()
    share = f"{outcomes['equal'] / max(compared, 1):.1%}"
    counts = [str(outcomes[outcome]) for outcome in OUTCOMES]
    return [area, str(compared), *counts, share, f"{floor:.0%}" if floor is not None else ""]


def print_rows(findings: Findings, about: Mapping[str, str]) -> None:
    """Print how many responses each row in docs/differences.md explains."""
    rows = [[about[name], str(count)] for name, count in findings.rows.most_common()]
    unmet = len(about) - len(rows)
    note = (
        "The number of declared answers for each row of docs/differences.md. An answer with several"
        " differences counts in several rows."
    )
    show("Declared differences", ["row", "answers"], rows, note)
    print(f"{unmet} of the {len(about)} rows did not occur.")
    for name, count in findings.ignored_keys.most_common():
        print(f"Not compared: `{name}` in {count} answers; its row says how it differs.")


def ranked(causes: Causes) -> list[Cause]:
    return sorted(causes.values(), key=lambda cause: (-cause.count, cause.shape))


def cause_text(cause: Cause, number: int) -> str:
    """Return one cause as Markdown."""
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
    differences = (*example.verdict.unexplained, *example.verdict.wording)
    lines += [f"- {difference}" for difference in differences[:6]]
    lines += ["", f"Strapi: {example.verdict.theirs.status} `{_shortened(example.verdict.theirs.body)}`", ""]
    lines += [f"Bifolio: {example.verdict.ours.status} `{_shortened(example.verdict.ours.body)}`", ""]
    return "\n".join(lines)


def wording_lines(findings: Findings, limit: int) -> Sequence[str]:
    return [f"  {cause.count:5}  {cause.shape}" for cause in ranked(findings.wordings)[:limit]]


def causes_text(findings: Findings) -> str:
    """Return every cause as Markdown, for all outcomes except `equal`."""
    parts = (
        ("Undeclared", findings.causes),
        ("Declared", findings.declared),
        ("Wording", findings.wordings),
    )
    return "\n".join(
        f"# {title}\n\n" + "\n".join(cause_text(cause, n) for n, cause in enumerate(ranked(causes), 1))
        for title, causes in parts
    )


def _shortened(body: Any) -> str:
    text = body if isinstance(body, str) else json.dumps(_without(body), ensure_ascii=False)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def _without(body: Any) -> Any:
    if isinstance(body, dict):
        return {k: _without(v) for k, v in body.items() if k not in ("createdAt", "updatedAt", "id")}
    return [_without(item) for item in body] if isinstance(body, list) else body


def below(findings: Findings, floors: Mapping[str, float]) -> Sequence[str]:
    """Return the areas with too few equal responses."""
    every = {**findings.outcomes, "all": sum(findings.outcomes.values(), Counter())}
    return [
        area
        for area, outcomes in every.items()
        if outcomes.total() >= ENOUGH and outcomes[EQUAL] / outcomes.total() < floors.get(area, 0)
    ]
