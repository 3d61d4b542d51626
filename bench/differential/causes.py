"""What a run found: how often each area agrees, and each cause of disagreement once."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from bench.differential.judging import Verdict


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


@dataclass(slots=True)
class Findings:
    """Everything that a run found."""

    same: Counter[str] = field(default_factory=Counter)  # by area
    known: Counter[str] = field(default_factory=Counter)  # by area
    deviations: Counter[str] = field(default_factory=Counter)  # by name
    causes: dict[str, Cause] = field(default_factory=dict)  # by shape

    def agree(self, area: str) -> None:
        """Both said the same."""
        self.same[area] += 1

    def deviate(self, area: str, names: Sequence[str]) -> None:
        """They differ as they are known to."""
        self.known[area] += 1
        self.deviations.update(names)

    def disagree(self, area: str, shape: str, example: Example) -> bool:
        """They differ; whether nothing of this shape was there before."""
        cause = self.causes.get(shape)
        if cause is None:
            cause = self.causes[shape] = Cause(shape, example)
        elif _size(example) < _size(cause.example):
            cause.example = example
        cause.areas[area] += 1
        return cause.count == 1

    def disagreements(self, area: str) -> int:
        """How many answers of an area differ for no known reason."""
        return sum(cause.areas[area] for cause in self.causes.values())

    def areas(self) -> list[str]:
        """The areas that were asked."""
        other = {area for cause in self.causes.values() for area in cause.areas}
        return sorted(set(self.same) | set(self.known) | other)

    def asked(self, area: str) -> int:
        """How many answers of an area were compared, known deviations left out."""
        return self.same[area] + self.disagreements(area)

    def agreement(self, area: str) -> float:
        """The share of answers of an area that agree, known deviations left out."""
        asked = self.asked(area)
        return self.same[area] / asked if asked else 1.0


def _size(example: Example) -> int:
    return sum(map(len, example.commands))
