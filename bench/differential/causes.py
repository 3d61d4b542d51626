"""Findings of a run: the outcomes of each area, and each cause of disagreement once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.differential.judging import BUT_WORDING, DECLARED, EQUAL, UNDECLARED, UNRECORDED, Verdict


@dataclass(frozen=True, slots=True)
class Example:
    """One disagreement: the commands that show it, and what was answered."""

    case: str
    commands: Sequence[str]
    verdict: Verdict


@dataclass(slots=True)
class Cause:
    """A disagreement that many requests show: its shape, the areas, and the shortest example."""

    shape: str
    example: Example
    areas: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        """How many answers it concerns."""
        return self.areas.total()


Causes = dict[str, Cause]


@dataclass(slots=True)
class Findings:
    """Everything that a run found."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)  # by area
    rows: Counter[str] = field(default_factory=Counter)  # declared answers by row, by its name
    aside: Counter[str] = field(default_factory=Counter)  # answers with keys that were not compared
    unrecorded: int = 0  # requests that a recording has no answer to
    causes: Causes = field(default_factory=dict)  # of undeclared differences, by shape
    wordings: Causes = field(default_factory=dict)  # of answers that are equal but for wording, by shape
    declared: Causes = field(default_factory=dict)  # of declared differences, by the names of the rows

    def note(self, area: str, shape: str, example: Example) -> bool:
        """Count an answer that was compared; whether nothing of this shape was there before."""
        verdict = example.verdict
        if verdict.outcome == UNRECORDED:
            self.unrecorded += 1
            return False
        self.outcomes.setdefault(area, Counter())[verdict.outcome] += 1
        self.rows.update(verdict.deviations if verdict.outcome == DECLARED else ())
        self.aside.update(verdict.aside)
        if verdict.outcome == EQUAL:
            return False
        causes = {BUT_WORDING: self.wordings, DECLARED: self.declared, UNDECLARED: self.causes}
        return _add(causes[verdict.outcome], area, shape, example)

    def areas(self) -> list[str]:
        """The areas that were asked."""
        return sorted(self.outcomes)


def _add(causes: Causes, area: str, shape: str, example: Example) -> bool:
    cause = causes.get(shape)
    if cause is None:
        cause = causes[shape] = Cause(shape, example)
    elif _size(example) < _size(cause.example):
        cause.example = example
    cause.areas[area] += 1
    return cause.count == 1


def _size(example: Example) -> int:
    return sum(map(len, example.commands))
