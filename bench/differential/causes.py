"""Findings of a run: the outcomes in each area, and the causes of differences, each of which is listed
once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.differential.judging import BUT_WORDING, DECLARED, EQUAL, UNDECLARED, UNRECORDED, Verdict


@dataclass(frozen=True, slots=True)
class Example:
    """One difference: the commands that reproduce it, and both responses."""

    case: str
    commands: Sequence[str]
    verdict: Verdict


@dataclass(slots=True)
class Cause:
    """A difference that multiple responses share, with the areas where it occurs and its shortest example."""

    shape: str
    example: Example
    areas: Counter[str] = field(default_factory=Counter)

    @property
    def count(self) -> int:
        return self.areas.total()


Causes = dict[str, Cause]


@dataclass(slots=True)
class Findings:
    """All findings of a run."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)  # number of each outcome, by area
    # number of declared differences for each row in docs/differences.md
    rows: Counter[str] = field(default_factory=Counter)
    # number of responses with a key that was not compared, by key
    ignored_keys: Counter[str] = field(default_factory=Counter)
    unrecorded: int = 0  # number of requests that are not in the recording
    causes: Causes = field(default_factory=dict)  # undeclared differences, by shape
    wordings: Causes = field(default_factory=dict)  # responses that differ only in wording, by shape
    declared: Causes = field(default_factory=dict)  # declared differences, by names of the rows

    def note(self, area: str, shape: str, example: Example) -> bool:
        """Record a comparison. Return whether its shape is new."""
        verdict = example.verdict
        if verdict.outcome == UNRECORDED:
            self.unrecorded += 1
            return False
        self.outcomes.setdefault(area, Counter())[verdict.outcome] += 1
        self.rows.update(verdict.deviations if verdict.outcome == DECLARED else ())
        self.ignored_keys.update(verdict.ignored_keys)
        if verdict.outcome == EQUAL:
            return False
        causes = {BUT_WORDING: self.wordings, DECLARED: self.declared, UNDECLARED: self.causes}
        return _add(causes[verdict.outcome], area, shape, example)

    def areas(self) -> list[str]:
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
