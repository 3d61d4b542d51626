"""Random reads that are sent to both servers, and a record of the differences."""

import random
from collections.abc import Sequence

from bench.differential.causes import Example, Findings
from bench.differential.judging import DECLARED, Judge, Verdict
from bench.differential.reads import AREAS, Reads
from bench.differential.request import Request, curl
from bench.differential.shrink import shrink
from bench.differential.world import World


def note(findings: Findings, area: str, case: str, judge: Judge, verdict: Verdict) -> None:
    command = curl(verdict.request, judge.pair.ours.names)
    findings.note(area, shape_of(judge, verdict), Example(case, [command], verdict))


def shape_of(judge: Judge, verdict: Verdict, write: Request | None = None) -> str:
    """Return the shape of a result, which is a text without names and values. Results with the same cause
    have the same shape.
    """
    if verdict.outcome == DECLARED:
        return ", ".join(verdict.deviations)
    differences = verdict.unexplained or verdict.wording
    told = judge.shapes.differences(differences, verdict.request)
    if not verdict.unexplained:
        return told
    then = " then read" if write else ""
    return f"{judge.shapes.request(write or verdict.request)}{then} → {told}"


class Reading:
    """Random reads of one site. The reads do not depend on each other."""

    def __init__(self, judge: Judge, world: World, findings: Findings, *, shrinking: bool = True) -> None:
        self._judge, self._world, self._findings = judge, world, findings
        self._shrinking = shrinking

    def run(self, seed: str, numbers: Sequence[int], areas: Sequence[str]) -> None:
        for number in numbers:
            chance = random.Random(f"{seed}/read/{number}")
            area = chance.choices(list(AREAS), list(AREAS.values()))[0]
            if area in areas:
                self._check(f"{seed}/read/{number}", area, Reads(self._world, chance).request(area))

    def _check(self, case: str, area: str, request: Request) -> None:
        verdict = self._judge.ask(request)
        if verdict.unexplained and self._shrinking:
            first = verdict
            small = shrink(request, lambda other: self._shows(other, first))
            verdict = self._judge.ask(small) if small != request else verdict
        note(self._findings, f"read {area}", case, self._judge, verdict)

    def _shows(self, request: Request, first: Verdict) -> bool:
        verdict = self._judge.ask(request)
        if not verdict.unexplained or verdict.unexplained[0].kind != first.unexplained[0].kind:
            return False
        shapes = self._judge.shapes
        told = [shapes.difference(found.unexplained[0], found.request) for found in (verdict, first)]
        return first.unexplained[0].kind not in ("status", "error") or told[0] == told[1]
