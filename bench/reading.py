"""Benchmark of reads, compared with an empty app that sends the same bytes."""

import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench.effort import scaled_seconds
from bench.load import CONNECTIONS, Requests, Result, run
from bench.read_requests import Case, cases
from bench.serving import Serving, bifolio, hosted
from bench.sites import Sizes
from bench.tables import count, ratio, show, size

SECONDS = scaled_seconds(1)  # duration of each server's turn


@dataclass(frozen=True)
class Row:
    """The results for one kind of request in each turn, for Bifolio and for the empty app."""

    case: Case
    bytes: float
    turns: Sequence[tuple[Result, Result]]

    def ratio(self) -> float:
        return median(ours.rate / empty.rate for ours, empty in self.turns)

    def cost_ms(self) -> float:
        return median(1000 / ours.rate - 1000 / empty.rate for ours, empty in self.turns)


def measure(root: Path, sizes: Sizes, rounds: int) -> None:
    """Measure reads of one site, and print tables for different and for repeated requests."""
    with ExitStack() as stack:
        ours = stack.enter_context(bifolio(root))
        asked = cases(sizes)
        answers = {path: ours.get(path) for case in asked for path in case.paths}
        file = root.parent / f"answers-{sizes.articles}"
        file.write_bytes(pickle.dumps(answers))
        empty = stack.enter_context(hosted("granian", "empty", file))
        for repeated in (False, True):
            turns = max(1, rounds // 2) if repeated else rounds
            rows = [_measure_case(case, answers, ours, empty, turns, repeated) for case in asked]
            _print(rows, sizes, repeated)


def _measure_case(
    case: Case, answers: dict[str, bytes], ours: Serving, empty: Serving, rounds: int, repeated: bool
) -> Row:
    paths = case.paths[:1] if repeated else case.paths
    requests = Requests(paths, unique=not repeated)
    turns = [
        (run(ours, requests, SECONDS, turn), run(empty, requests, SECONDS, turn)) for turn in range(rounds)
    ]
    return Row(case, sum(len(answers[path]) for path in paths) / len(paths), turns)


def _print(rows: Sequence[Row], sizes: Sizes, repeated: bool) -> None:
    kind = "the same request again" if repeated else "every request different"
    shown = []
    for row in rows:
        ours, empty = ([turn[i] for turn in row.turns] for i in (0, 1))
        shown.append(
            [
                row.case.name,
                size(row.bytes),
                count(median(r.rate for r in ours)),
                count(median(r.rate for r in empty)),
                ratio(row.ratio()),
                f"{row.cost_ms():.2f} ms",
                f"{median(r.median_ms for r in ours):.1f} / {median(r.p99_ms for r in ours):.1f} ms",
                f"{median(r.median_ms for r in empty):.1f} / {median(r.p99_ms for r in empty):.1f} ms",
            ]
        )
    head = [
        "request",
        "response",
        "Bifolio/s",
        "empty/s",
        "ratio",
        "added",
        "median / p99",
        "empty, median / p99",
    ]
    show(f"Reading, {sizes.articles:,} articles, {kind} ({CONNECTIONS} connections)", head, shown)
