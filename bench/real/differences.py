"""Differences between expected and actual values, by tree and cause."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

LONGEST = 100  # maximum length of a value in an example


@dataclass(slots=True)
class Differences:
    """The differences in one tree, with the number of each cause and its first example."""

    counts: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, cause: str, example: str) -> None:
        self.counts[cause] += 1
        self.examples.setdefault(cause, example)

    def count(self, prefix: str) -> int:
        return sum(number for cause, number in self.counts.items() if cause.startswith(prefix))

    def rows(self) -> Iterator[tuple[str, int, str]]:
        for cause, number in self.counts.most_common():
            yield cause, number, self.examples[cause]


def shorten(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def name_some(names: Iterable[str], limit: int = 3) -> str:
    listed = list(names)
    more = f" and {len(listed) - limit} more" if len(listed) > limit else ""
    return ", ".join(listed[:limit]) + more
